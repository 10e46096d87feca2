// SPDX-License-Identifier: Apache-2.0
// `rdmasim report`: hands over to the Python program of tools/report, which draws with matplotlib (docs/adr/0013). This file
// only finds them; messages and exit code are those of the program.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "cli/commands.h"
#include "cli/options.h"

namespace cli {
namespace po = boost::program_options;
namespace fs = std::filesystem;
namespace {

/// The folder of the program: beside this binary when installed, else in the tree that it was built from.
fs::path program_folder() {
  std::error_code ignore;
  std::vector<fs::path> places;
  if (const fs::path self = fs::read_symlink("/proc/self/exe", ignore); !self.empty())
    places.push_back(self.parent_path().parent_path() / "share/rdmasim/report");
  places.emplace_back(RDMASIM_SOURCE_REPORT);
  for (const fs::path& place : places)
    if (fs::exists(place / "__main__.py", ignore)) return place;
  std::string text = "the report program is not installed; looked for";
  for (const fs::path& place : places) text.append(" ").append((place / "__main__.py").string());
  throw UsageError(text);
}

/// Debian installs matplotlib for its own Python only, so that one comes before another in the PATH.
std::string interpreter() {
  if (const char* chosen = std::getenv("RDMASIM_PYTHON"); chosen != nullptr && *chosen != '\0') return chosen;
  std::error_code ignore;
  return fs::exists("/usr/bin/python3", ignore) ? "/usr/bin/python3" : "python3";
}

}  // namespace

int report_command(const Arguments& arguments) {
  Options o(
      "rdmasim report DIR [OPTIONS]",
      "Writes one HTML file that shows a sweep (DIR/sweep.sqlite) or a run (DIR/result.json), and its plots as SVG.\n"
      "The file opens from disk and needs no network.",
      "DIR, the --out directory of a sweep or a run", 1);
  o.add()("out", po::value<std::string>()->value_name("FILE"),
          "the HTML file (default: DIR/report.html); the plots go to a folder of its name beside it");
  o.add()("x", po::value<std::string>()->value_name("PARAMETER"), "horizontal axis of the plots of a sweep");
  o.add()("metric", po::value<std::vector<std::string>>()->value_name("NAME"), "plot this metric; repeatable");
  o.add()("quiet", "do not say what was written");
  if (!o.parse(arguments)) return kOk;

  const std::string& directory = o.needed_positional().front();
  std::vector<std::string> command{interpreter(), "-B", program_folder().string()};
  for (const char* name : {"out", "x"})
    if (o.has(name)) command.push_back(std::string("--") + name + "=" + o.get<std::string>(name));
  for (const std::string& metric : o.all("metric")) command.push_back("--metric=" + metric);
  if (o.has("quiet")) command.emplace_back("--quiet");
  command.insert(command.end(), {"--", directory});
  std::vector<char*> argv;
  for (std::string& a : command) argv.push_back(a.data());
  argv.push_back(nullptr);
  std::cout.flush();
  execvp(argv[0], argv.data());
  throw UsageError(command.front() + ": cannot be started: " + std::strerror(errno));
}

}  // namespace cli
