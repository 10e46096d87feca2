// SPDX-License-Identifier: Apache-2.0
// Build tool: reads the trace_points.h files of the libraries and prints a table of the points that they declare, for
// `rdmasim list trace-points`. Points stay plain constants that register nowhere, and the list cannot go stale.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

int main(int argc, char** argv) {
  const std::regex declaration(R"re(constexpr\s+[\w:]*Point\s+\w+\s*\{)re");
  const std::regex point(
      R"re(constexpr\s+[\w:]*Point\s+\w+\s*\{\s*"([^"]+)"\s*,\s*[\w:]*Category::(\w+)\s*,\s*[\w:]*Kind::(\w+)\s*(?:,\s*\{([^}]*)\}\s*)?(?:,\s*[\w:]*Mark::(\w+)\s*(?:,\s*-?\d\s*(?:,\s*[\w:]*Form::\w+\s*)?)?)?\})re");
  std::vector<std::tuple<std::string, std::string, std::string, std::string, std::string, std::string>> rows;
  if (argc < 2) return 2;
  const std::string root = std::string(argv[1]) + "/";
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(root + argv[i]);
    std::ostringstream buffer;
    buffer << file.rdbuf();
    const std::string text = buffer.str();
    const auto end = std::sregex_iterator();
    const auto declared = std::distance(std::sregex_iterator(text.begin(), text.end(), declaration), end);
    std::ptrdiff_t read = 0;
    for (auto it = std::sregex_iterator(text.begin(), text.end(), point); it != end; ++it, ++read) {
      std::string arguments = (*it)[4];
      std::erase(arguments, '"');
      const std::string mark = (*it)[5];
      rows.emplace_back((*it)[2], (*it)[1], (*it)[3], arguments, argv[i], mark == "none" ? "" : mark);
    }
    if (!file || read != declared) {
      std::fprintf(stderr, "%s%s: read %td of %td trace points\n", root.c_str(), argv[i], read, declared);
      return 1;
    }
  }
  std::ranges::sort(rows);
  for (const auto& [category, name, kind, arguments, file, mark] : rows)
    std::printf("{\"%s\", \"%s\", \"%s\", \"%s\", \"%s\", \"%s\"},\n", name.c_str(), category.c_str(), kind.c_str(),
                arguments.c_str(), file.c_str(), mark.c_str());
  return 0;
}
