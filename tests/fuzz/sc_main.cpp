// SPDX-License-Identifier: Apache-2.0
// SystemC's library refers to an sc_main. Fuzz targets simulate nothing: libFuzzer's main function calls them.
#include <systemc>

int sc_main(int, char**) { return 1; }
