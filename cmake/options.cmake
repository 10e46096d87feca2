# SPDX-License-Identifier: Apache-2.0
# Compiler settings that every target shares, and the helper that declares a library.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 17)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

option(RDMASIM_TESTS "Build the tests" ON)
option(RDMASIM_TRACE "Compile the trace points in (OFF only to measure what they cost)" ON)
set(RDMASIM_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them")
option(RDMASIM_WERROR "Treat warnings as errors" OFF)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(rdmasim_options INTERFACE)
target_compile_options(rdmasim_options INTERFACE -Wall -Wextra -Wshadow $<$<BOOL:${RDMASIM_WERROR}>:-Werror>
  $<$<COMPILE_LANGUAGE:CXX>:-Wconversion -Wnon-virtual-dtor -Woverloaded-virtual>)
target_compile_definitions(rdmasim_options INTERFACE $<$<NOT:$<BOOL:${RDMASIM_TRACE}>>:RDMASIM_NO_TRACE>)
target_include_directories(rdmasim_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/models)
if(RDMASIM_SANITIZE)
  target_compile_options(rdmasim_options INTERFACE -fsanitize=${RDMASIM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(rdmasim_options INTERFACE -fsanitize=${RDMASIM_SANITIZE})
endif()

# rdmasim_library(NAME SOURCES a.cpp … LIBS x …): one static library for one folder; alias rdmasim::NAME.
function(rdmasim_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(rdmasim_${name} STATIC ${ARG_SOURCES})
  add_library(rdmasim::${name} ALIAS rdmasim_${name})
  target_link_libraries(rdmasim_${name} PUBLIC rdmasim_options ${ARG_LIBS})
endfunction()
