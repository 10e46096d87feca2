# SPDX-License-Identifier: Apache-2.0
# The version that --version and every result print: project version, git id, build type.
find_package(Git QUIET)
set(RDMASIM_GIT_ID "unknown")
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=10
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE RDMASIM_GIT_ID OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT RDMASIM_GIT_ID)
  set(RDMASIM_GIT_ID "unknown")
endif()
