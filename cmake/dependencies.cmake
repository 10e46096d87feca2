# SPDX-License-Identifier: Apache-2.0
# Everything here is a Debian 12 package; `./dev` installs them.
add_library(rdmasim_systemc INTERFACE)
find_path(SYSTEMC_INCLUDE_DIR systemc REQUIRED)
find_library(SYSTEMC_LIBRARY systemc REQUIRED)
target_include_directories(rdmasim_systemc SYSTEM INTERFACE ${SYSTEMC_INCLUDE_DIR})
target_link_libraries(rdmasim_systemc INTERFACE ${SYSTEMC_LIBRARY})
# Debian builds libsystemc as C++17; its link-time API check must see the same standard here.
target_compile_definitions(rdmasim_systemc INTERFACE SC_CPLUSPLUS=201703L SC_INCLUDE_DYNAMIC_PROCESSES)

find_package(spdlog REQUIRED CONFIG)
find_package(nlohmann_json REQUIRED CONFIG)
find_package(Boost REQUIRED COMPONENTS program_options)
find_library(DEFLATE_LIBRARY deflate REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_path(VERBS_INCLUDE_DIR infiniband/mlx5dv.h REQUIRED)
# For rdmasim-mpi, which is built where it is found.
find_package(MPI QUIET COMPONENTS C)
