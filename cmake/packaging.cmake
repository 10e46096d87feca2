# SPDX-License-Identifier: Apache-2.0
# `cmake --install` puts the simulator into bin/ and its scenarios, profiles and schema into share/rdmasim/.
include(GNUInstallDirs)
install(DIRECTORY scenarios/ DESTINATION ${CMAKE_INSTALL_DATADIR}/rdmasim/scenarios FILES_MATCHING PATTERN "*.json")
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
