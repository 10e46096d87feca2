# SPDX-License-Identifier: Apache-2.0
# `cmake --install` puts the simulator into bin/ and its scenarios, profiles and schema into share/rdmasim/, with the trace
# viewer if `./dev viewer` has built it.
include(GNUInstallDirs)
install(DIRECTORY scenarios/ DESTINATION ${CMAKE_INSTALL_DATADIR}/rdmasim/scenarios FILES_MATCHING PATTERN "*.json")
install(FILES tools/trace_viewer/dist/index.html DESTINATION ${CMAKE_INSTALL_DATADIR}/rdmasim RENAME trace_viewer.html OPTIONAL)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
