// SPDX-License-Identifier: Apache-2.0
// Entry point of every test program: SystemC calls sc_main, which runs the GoogleTest cases. ctest starts one process per
// case, because SystemC has one kernel per process.
#include <gtest/gtest.h>

#include <systemc>

#ifdef __SANITIZE_ADDRESS__
// A program that still waits when its simulation ends keeps its stack, and what the stack owns: SystemC does not unwind it.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

int sc_main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
