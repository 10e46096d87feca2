# SPDX-License-Identifier: Apache-2.0
# `cmake --install` puts the simulator into bin/ and its scenarios, profiles and schema into share/rdmasim/, with the trace
# viewer if `./dev viewer` has built it.
include(GNUInstallDirs)
install(DIRECTORY scenarios/ DESTINATION ${CMAKE_INSTALL_DATADIR}/rdmasim/scenarios FILES_MATCHING PATTERN "*.json")
install(FILES tools/trace_viewer/dist/index.html DESTINATION ${CMAKE_INSTALL_DATADIR}/rdmasim RENAME trace_viewer.html OPTIONAL)
install(DIRECTORY tools/report/ DESTINATION ${CMAKE_INSTALL_DATADIR}/rdmasim/report PATTERN "__pycache__" EXCLUDE)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# `cpack` in a build directory makes a Debian package.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rdmasim)
set(CPACK_PACKAGE_VENDOR "rdmasim")
set(CPACK_PACKAGE_CONTACT "rdmasim maintainers <maintainers@rdmasim.invalid>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-matplotlib, python3-jinja2")  # of `rdmasim report`
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"CPU, PCIe, IOMMU, adapter, kernel and fabric are simulated together, from
ibv_post_send to the peer's ibv_poll_cq, with exact bytes and times.")
include(CPack)
