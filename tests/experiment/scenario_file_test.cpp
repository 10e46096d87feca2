// SPDX-License-Identifier: Apache-2.0
// Profiles: search, merge order, provenance of errors, cycles, --set.
#include "system/scenario_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Part {
  sim::Picos latency{1000};
  std::uint32_t ways = 4;
  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("latency", c.latency, "", sim::assumed(""));
    v("ways", c.ways, "", sim::assumed(""), sim::Range{1, 64});
  }
};
struct Node {
  std::string name;
  Part part;
  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("name", c.name, "", sim::assumed(""));
    v("part", c.part, "", sim::assumed(""));
  }
};
struct Config {
  std::string description;
  Part part;
  std::vector<Node> hosts{{"a", {}}, {"b", {}}};
  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("description", c.description, "", sim::assumed(""));
    v("part", c.part, "", sim::assumed(""));
    v("hosts", c.hosts, "", sim::assumed(""));
  }
};

class ScenarioFile : public testing::Test {
 protected:
  ScenarioFile() : dir_(fs::temp_directory_path() / ("rdmasim_scenario_" + std::to_string(getpid()))) {
    fs::create_directories(dir_ / "s" / "profiles");
    fs::create_directories(dir_ / "s" / "deep");
    unsetenv("RDMASIM_DATA");
  }
  ~ScenarioFile() override { fs::remove_all(dir_); }
  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / "s" / name) << text;
    return dir_ / "s" / name;
  }
  Config load(const fs::path& file, std::vector<std::string> sets = {}) {
    sim::ConfigErrors errors;
    document_ = sys::load_document(file, {std::move(sets)}, {{{"hosts", "host"}}, {"part", "hosts", "host"}},
                                   sim::to_json(Config{}), errors);
    Config config;
    if (errors.empty()) sim::read_config(document_.root, config, errors);
    if (!errors.empty()) throw sim::ConfigFailure(std::move(errors));
    return config;
  }
  std::string errors(const fs::path& file, std::vector<std::string> sets = {}) {
    try {
      load(file, std::move(sets));
    } catch (const sim::ConfigFailure& f) {
      return f.errors.text();
    }
    return {};
  }
  std::string path(const std::string& name) { return (dir_ / "s" / name).string(); }

  fs::path dir_;
  sys::ScenarioDocument document_;
};

TEST_F(ScenarioFile, BaseProfileScenarioAndFlagsWinInThatOrder) {
  write("profiles/base.json",
        R"({"description": "b", "part": {"latency": "1 us", "ways": 1}, "hosts": [{"name": "x"}]})");
  write("profiles/p.json", R"({"base": "base", "part": {"ways": 2}})");
  const auto f = write("deep/s.json", R"({"$schema": "x", "profile": "p", "part": {"ways": 3}})");
  Config c = load(f);
  EXPECT_EQ(c.part.latency.n, 1'000'000);
  EXPECT_EQ(c.part.ways, 3u);
  EXPECT_EQ(c.description, "");
  EXPECT_EQ(c.hosts.size(), 1u);
  EXPECT_THAT(document_.profiles, testing::ElementsAre("p", "base"));
  c = load(f, {"part.ways=5", "hosts.0.part.latency=7 ns"});
  EXPECT_EQ(c.part.ways, 5u);
  EXPECT_EQ(c.hosts[0].part.latency.n, 7000);
  c = load(f, {"profile=base"});
  EXPECT_THAT(document_.profiles, testing::ElementsAre("base"));
}

TEST_F(ScenarioFile, ElementsInheritFromTheTemplateBesideThem) {
  const auto f =
      write("s.json",
            R"({"host": {"part": {"ways": 8}}, "hosts": [{"name": "a"}, {"name": "b", "part": {"latency": "2 ns"}}]})");
  const Config c = load(f, {"hosts.1.part.ways=16"});
  EXPECT_EQ(c.hosts[0].part.ways, 8u);
  EXPECT_EQ(c.hosts[1].part.ways, 16u);
  EXPECT_EQ(c.hosts[1].part.latency.n, 2000);
}

TEST_F(ScenarioFile, ADocumentWithoutTheListGetsTheUsualNumberOfElements) {
  write("profiles/p.json", R"({"host": {"part": {"ways": 8}}})");
  const Config c = load(write("s.json", R"({"profile": "p"})"), {"host.part.latency=3 ns", "hosts.1.part.ways=2"});
  ASSERT_EQ(c.hosts.size(), 2u);
  EXPECT_EQ(c.hosts[0].part.ways, 8u);
  EXPECT_EQ(c.hosts[1].part.ways, 2u);
  EXPECT_EQ(c.hosts[1].part.latency.n, 3000);
}

TEST_F(ScenarioFile, AMistakeInTheTemplateIsToldOnce) {
  EXPECT_EQ(errors(write("s.json", R"({"host": {"part": {"ways": 0}}})")),
            path("s.json") + ":1:28: hosts.0.part.ways: out of range: expected 1 to 64, got 0\n");
}

TEST_F(ScenarioFile, AProfileHoldsNothingButSectionsOfAMachine) {
  write("profiles/p.json", R"({"prat": {}, "part": {}})");
  EXPECT_EQ(errors(write("s.json", R"({"profile": "p"})")),
            path("profiles/p.json") +
                ":1:2: a profile has no section \"prat\"; did you mean \"part\"? (it describes a machine: \"part\", "
                "\"hosts\" or \"host\")\n");
}

TEST_F(ScenarioFile, AMistakeIsShownInTheFileOrFlagThatMadeIt) {
  write("profiles/p.json", "{\n  \"part\": {\"ways\": 65}\n}");
  const auto f = write("s.json", "{\"profile\": \"p\",\n \"part\": {\"latncy\": \"1 ns\"}}");
  EXPECT_EQ(errors(f, {"part.latency=5", "hosts.7.name=z"}),
            "--set hosts.7.name=z: hosts: has 2 elements; there is no element 7\n");
  EXPECT_EQ(errors(f, {"part.latency=5"}),
            "--set part.latency=5: part.latency: expected a time with its unit such as \"250 ns\", got the number 5\n" +
                path("profiles/p.json") + ":2:20: part.ways: out of range: expected 1 to 64, got 65\n" +
                path("s.json") + ":2:11: part: unknown key \"latncy\"; did you mean \"latency\"?\n");
}

TEST_F(ScenarioFile, CyclesAreRefusedWithTheChain) {
  write("profiles/a.json", R"({"base": "b"})");
  write("profiles/b.json", R"({"base": "c"})");
  write("profiles/c.json", R"({"base": "a"})");
  const auto f = write("s.json", R"({"profile": "a"})");
  EXPECT_THAT(errors(f),
              HasSubstr("profiles/c.json:1:10: base: profiles inherit from each other in a circle: a -> b -> c -> a"));
}

TEST_F(ScenarioFile, AMissingProfileNamesTheOnesThereAre) {
  write("profiles/connectx5.json", "{}");
  EXPECT_THAT(
      errors(write("s.json", R"({"profile": "conectx5"})")),
      testing::AllOf(HasSubstr("s.json:1:13: profile: there is no profile \"conectx5\"; did you mean \"connectx5\"?"),
                     HasSubstr("connectx5")));
  EXPECT_THAT(errors(write("s.json", R"({"profile": 5})")),
              HasSubstr("profile: expected the name of a profile, got the number 5"));
  EXPECT_THAT(errors(write("s.json", R"({"profile": "./x.json"})")), HasSubstr("profile: there is no file "));
  EXPECT_THAT(errors(write("s.json", "[]")), HasSubstr("s.json:1:1: expected an object, got a list"));
}

TEST_F(ScenarioFile, BrokenProfilesAreReportedWithTheirOwnPosition) {
  write("profiles/p.json", "{\n  \"part\": }");
  EXPECT_THAT(errors(write("s.json", R"({"profile": "p"})")), HasSubstr("profiles/p.json:2:11: broken JSON"));
}

TEST_F(ScenarioFile, TheDataDirectoryOfTheEnvironmentIsSearched) {
  fs::create_directories(dir_ / "data" / "profiles");
  std::ofstream(dir_ / "data" / "profiles" / "far.json") << R"({"description": "far away", "part": {"ways": 9}})";
  std::ofstream(dir_ / "data" / "one.json") << R"({"description": "first"})";
  setenv("RDMASIM_DATA", (dir_ / "data").c_str(), 1);
  EXPECT_EQ(load(write("s.json", R"({"profile": "far"})")).part.ways, 9u);
  const auto profiles = sys::list_profiles();
  const auto far = std::ranges::find(profiles, "far", &sys::LibraryEntry::name);
  ASSERT_NE(far, profiles.end());
  EXPECT_EQ(far->description, "far away");
  const auto scenarios = sys::list_scenarios();
  EXPECT_NE(std::ranges::find(scenarios, "one.json", &sys::LibraryEntry::name), scenarios.end());
  EXPECT_EQ(std::ranges::find(scenarios, "profiles/far.json", &sys::LibraryEntry::name), scenarios.end());
}

TEST_F(ScenarioFile, AFileGoesOnTopOfThoseThatItIncludes) {
  write("profiles/p.json", R"({"part": {"latency": "9 ns"}})");
  write("deep/first.json", R"({"profile": "p", "description": "first", "part": {"ways": 2}})");
  write("deep/second.json", R"({"include": ["third.json"], "part": {"ways": 3}})");
  write("deep/third.json", R"({"part": {"ways": 4}, "description": "third"})");
  const Config c =
      load(write("s.json", R"({"include": ["deep/first.json", "deep/second.json"], "description": "own"})"));
  EXPECT_EQ(c.description, "own");
  EXPECT_EQ(c.part.ways, 3u);
  EXPECT_EQ(c.part.latency.n, 9000) << "the profile of an included file";
}

TEST_F(ScenarioFile, AMistakeInAnIncludeIsShownWhereItStands) {
  write("a.json", R"({"include": ["b.json"], "part": {"wyas": 2}})");
  write("b.json", R"({"include": ["a.json"]})");
  EXPECT_EQ(errors(write("s.json", R"({"include": ["a.json", "c.json", 7]})")),
            path("b.json") +
                ":1:14: include: files include each other in a circle: s.json -> a.json -> b.json -> a.json\n" +
                path("s.json") + ":1:24: include: there is no file " + path("c.json") + "\n" + path("s.json") +
                ":1:34: include: expected a file name, got the number 7\n");
  write("a.json", R"({"part": {"wyas": 2}})");
  EXPECT_EQ(errors(write("s.json", R"({"include": ["a.json"]})")),
            path("a.json") + ":1:11: part: unknown key \"wyas\"; did you mean \"ways\"?\n");
  EXPECT_EQ(errors(write("s.json", R"({"include": "a.json"})")),
            path("s.json") + ":1:13: include: expected a list of files, got the string \"a.json\"\n");
}

}  // namespace
