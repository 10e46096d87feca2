# SPDX-License-Identifier: Apache-2.0
# Script of the target rdmasim_git_id: writes HEADER from the state of SOURCE_DIR.
set(id "")
if(GIT)
  execute_process(COMMAND ${GIT} --no-optional-locks describe --always --dirty --abbrev=10
    WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE id OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT id)
  set(id "unknown")
endif()
# Leaves the file alone when it already says so.
file(CONFIGURE OUTPUT ${HEADER} CONTENT [[
// SPDX-License-Identifier: Apache-2.0
#pragma once
#define RDMASIM_GIT_ID "@id@"
]] @ONLY)
