// SPDX-License-Identifier: Apache-2.0
// Every scenario of the tree ends as it says: its expectations are met, the verdict among them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "experiment/run.h"
#include "experiment/scenario.h"

namespace {

namespace fs = std::filesystem;

const fs::path& root() {
  static const fs::path r = fs::path(RDMASIM_SOURCE_DIR) / "scenarios";
  return r;
}

/// Paths below scenarios/, benches and what is no scenario apart.
std::vector<std::string> scenario_files() {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(root())) {
    const fs::path name = entry.path().lexically_relative(root());
    const std::string top = name.begin()->string();
    if (name.extension() == ".json" && top != "profiles" && top != "schema" && top != "bench")
      out.push_back(name.string());
  }
  std::ranges::sort(out);
  return out;
}

std::string unmet(const experiment::Result& r) {
  std::string out;
  for (const auto& e : r.expectations)
    if (!e.met) out += e.at + ": expected " + e.expected + ", got " + e.actual + "\n";
  for (const auto& p : r.programs)
    for (const auto& f : p.failures) out += f.at + ": " + f.step + ": " + f.message + "\n";
  for (const std::string& s : r.outstanding) out += s + "\n";
  return out;
}

class Scenarios : public testing::TestWithParam<std::string> {};

TEST_P(Scenarios, EndAsTheySay) {
  const experiment::Scenario s = experiment::load_scenario(root() / GetParam(), {});
  EXPECT_FALSE(s.config.description.empty());
  if (GetParam().starts_with("cases/")) {
    EXPECT_FALSE(s.config.teaches.empty()) << "says what one learns from it";
    EXPECT_TRUE(std::ranges::any_of(s.config.expect, [](const auto& e) { return e.at == "/verdict"; }));
  }
  experiment::RunOptions options = experiment::run_options(s);
  const experiment::Result r = experiment::run(std::move(options), experiment::machine_factory(s));
  EXPECT_EQ(experiment::exit_code(r), 0) << experiment::name_of(r.verdict) << "\n" << unmet(r);
}

INSTANTIATE_TEST_SUITE_P(Tree, Scenarios, testing::ValuesIn(scenario_files()), [](const auto& i) {
  std::string name = i.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

}  // namespace
