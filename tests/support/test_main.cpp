// SPDX-License-Identifier: Apache-2.0
// Entry point of every test program: SystemC calls sc_main, which runs the GoogleTest cases. ctest starts one process per
// case, because SystemC has one kernel per process.
#include <gtest/gtest.h>

#include <systemc>

int sc_main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
