// SPDX-License-Identifier: Apache-2.0
// Entry of rdmasim. SystemC's own main() is replaced, so that its banner stays away; everything runs below sc_main.
#include <unistd.h>

#include <cstdlib>
#include <systemc>

#include "cli/commands.h"

#ifdef __SANITIZE_ADDRESS__
// A program that still waits when its simulation ends keeps its stack, and what the stack owns: SystemC does not unwind it.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

int sc_main(int argc, char** argv) { return cli::dispatch({argv + 1, argv + argc}); }

int main(int argc, char** argv) {
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  return sc_core::sc_elab_and_sim(argc, argv);
}
