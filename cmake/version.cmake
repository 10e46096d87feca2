# SPDX-License-Identifier: Apache-2.0
# The git id that --version and every result print. It is looked up by each build, because a commit changes no file that
# the build would otherwise notice; the header is written only when the id has changed.
find_package(Git QUIET)
set(RDMASIM_GENERATED_DIR ${CMAKE_BINARY_DIR}/generated)
add_custom_target(rdmasim_git_id
  COMMAND ${CMAKE_COMMAND} -DGIT=${GIT_EXECUTABLE} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DHEADER=${RDMASIM_GENERATED_DIR}/git_id.h
    -P ${CMAKE_CURRENT_LIST_DIR}/git_id.cmake
  BYPRODUCTS ${RDMASIM_GENERATED_DIR}/git_id.h
  COMMENT "git id" VERBATIM)
