// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>

#include "cli/commands.h"
#include "cli/options.h"
#include "experiment/scenario.h"

namespace cli {
namespace po = boost::program_options;

int validate_command(const Arguments& arguments) {
  Options o("rdmasim validate FILE... [OPTIONS]",
            "Checks scenario files and reports every mistake with file, line and column.", "FILE", -1);
  o.add()("set", po::value<std::vector<std::string>>()->value_name("PATH=VALUE"), "override a value first; repeatable");
  if (!o.parse(arguments)) return kOk;
  int code = kOk;
  for (const std::string& file : o.needed_positional()) {
    try {
      experiment::load_scenario(file, {o.all("set")});
      std::cout << file << ": ok\n" << std::flush;
    } catch (const sim::ConfigFailure& e) {
      const std::string text = e.errors.text();
      const auto lines = std::ranges::count(text, '\n');
      std::cerr << text << file << ": " << lines << (lines == 1 ? " error\n" : " errors\n");
      code = kUserError;
    }
  }
  return code;
}

}  // namespace cli
