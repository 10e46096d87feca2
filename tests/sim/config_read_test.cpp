// SPDX-License-Identifier: Apache-2.0
// Structs from trees: every field type, every kind of mistake with its wording, effective values and descriptions.
#include "sim/config_read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {
enum class Mode { off, translated };
}
template <>
struct sim::EnumNames<Mode> {
  static constexpr std::array<std::pair<Mode, std::string_view>, 2> values{
      {{Mode::off, "off"}, {Mode::translated, "translated"}}};
};

namespace {

using sim::ConfigErrors;
using sim::Json;
using testing::HasSubstr;

struct Link {
  sim::Picos latency{150'000};
  sim::BitRate rate{100'000'000'000};
  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("latency", c.latency, "one way", sim::assumed("short cable"), sim::Range{0, 1e9});
    v("rate", c.rate, "line rate", sim::spec("802.3"));
  }
};

struct Everything {
  sim::Picos limit = sim::kNever;
  sim::Bytes size{4096};
  bool on = true;
  std::uint8_t small = 3;
  std::int32_t offset = -1;
  double ratio = 0.5;
  std::string name = "x";
  Mode mode = Mode::off;
  std::vector<std::uint32_t> list{1, 2};
  std::vector<Link> links;
  std::map<std::string, Link> by_name;
  std::optional<sim::Picos> timeout;
  sim::Json anything;
  Link link;
  std::uint32_t ways = 4;
  std::string need;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("limit", c.limit, "", sim::assumed(""));
    v("size", c.size, "", sim::assumed(""), sim::Range{64, 1 << 20});
    v("on", c.on, "", sim::assumed(""));
    v("small", c.small, "", sim::assumed(""), sim::Range{1, 64});
    v("offset", c.offset, "", sim::assumed(""));
    v("ratio", c.ratio, "", sim::assumed(""), sim::Range{0, 1});
    v("name", c.name, "", sim::assumed(""));
    v("mode", c.mode, "", sim::assumed(""));
    v("list", c.list, "", sim::assumed(""), sim::Range{0, 10});
    v("links", c.links, "", sim::assumed(""));
    v("by_name", c.by_name, "", sim::assumed(""));
    v("timeout", c.timeout, "", sim::assumed(""));
    v("anything", c.anything, "", sim::assumed(""));
    v("link", c.link, "", sim::assumed(""));
    v("ways", c.ways, "", sim::measured(""));
    v("need", c.need, "", sim::required());
  }
  template <class F>
  void check(F&& fail) const {
    if ((ways & (ways - 1)) != 0) fail("ways", "must be a power of two");
  }
};

std::string errors_of(std::string_view text, Everything* out = nullptr) {
  ConfigErrors errors;
  const auto j = sim::parse_json(text, "t.json", errors);
  Everything e;
  if (j) sim::read_config(*j, out != nullptr ? *out : e, errors);
  return errors.text();
}

TEST(ReadConfig, EveryTypeIsRead) {
  Everything e;
  ASSERT_EQ(
      errors_of(R"({"limit": "3 ms", "size": "1 KiB", "on": false, "small": 64, "offset": -7, "ratio": 1, "name": "n",
    "mode": "translated", "list": [3], "links": [{"latency": "1.5 ns"}, {}], "by_name": {"up": {"rate": "25 Gb/s"}},
    "timeout": "2 us", "anything": [1, "a"], "link": {"rate": "10 Gbps"}, "ways": 8, "need": "y"})",
                &e),
      "");
  EXPECT_EQ(e.limit.n, 3'000'000'000);
  EXPECT_EQ(e.size.n, 1024u);
  EXPECT_FALSE(e.on);
  EXPECT_EQ(e.small, 64);
  EXPECT_EQ(e.offset, -7);
  EXPECT_EQ(e.ratio, 1.0);
  EXPECT_EQ(e.mode, Mode::translated);
  EXPECT_EQ(e.list, std::vector<std::uint32_t>{3});
  EXPECT_EQ(e.links.at(0).latency.n, 1500);
  EXPECT_EQ(e.links.at(1).latency.n, 150'000);
  EXPECT_EQ(e.by_name.at("up").rate.bps, 25'000'000'000u);
  EXPECT_EQ(e.timeout->n, 2'000'000);
  EXPECT_EQ(e.anything.compact(), "[1, \"a\"]");
  EXPECT_EQ(e.link.rate.bps, 10'000'000'000u);
}

TEST(ReadConfig, AllMistakesOfAFileAreReportedInTheOrderOfTheText) {
  EXPECT_EQ(errors_of("{\n"
                      "  \"need\": \"y\",\n"
                      "  \"link\": {\"latncy\": \"1 ns\", \"rate\": 100},\n"
                      "  \"small\": 65,\n"
                      "  \"mode\": \"translatd\",\n"
                      "  \"links\": [{}, {\"latency\": \"250\"}],\n"
                      "  \"ways\": 3\n"
                      "}"),
            "t.json:3:12: link: unknown key \"latncy\"; did you mean \"latency\"?\n"
            "t.json:3:38: link.rate: expected a rate with its unit such as \"100 Gb/s\", got the number 100\n"
            "t.json:4:12: small: out of range: expected 1 to 64, got 65\n"
            "t.json:5:11: mode: expected \"off\" or \"translated\", got the string \"translatd\"; did you mean "
            "\"translated\"?\n"
            "t.json:6:29: links.1.latency: cannot read the string \"250\": unit missing; expected a time with its unit "
            "such as \"250 ns\"\n"
            "t.json:7:11: ways: must be a power of two\n");
}

TEST(ReadConfig, WrongTypesSayWhatWasExpected) {
  const auto error = [](const std::string& member) { return errors_of("{\"need\": \"y\", " + member + "}"); };
  EXPECT_THAT(error("\"on\": \"yes\""), HasSubstr("on: expected true or false, got the string \"yes\""));
  EXPECT_THAT(error("\"small\": 256"), HasSubstr("small: expected an integer from 0 to 255, got the number 256"));
  EXPECT_THAT(error("\"small\": -1"), HasSubstr("small: expected an integer from 0 to 255, got the number -1"));
  EXPECT_THAT(error("\"small\": 1.5"), HasSubstr("small: expected an integer from 0 to 255, got the number 1.5"));
  EXPECT_THAT(error("\"offset\": 3000000000"), HasSubstr("offset: expected an integer from -2147483648 to 2147483647"));
  EXPECT_THAT(error("\"ratio\": \"1\""), HasSubstr("ratio: expected a number, got the string \"1\""));
  EXPECT_THAT(error("\"ratio\": 1.25"), HasSubstr("ratio: out of range: expected 0 to 1, got 1.25"));
  EXPECT_THAT(error("\"name\": 3"), HasSubstr("name: expected a string, got the number 3"));
  EXPECT_THAT(error("\"list\": {}"), HasSubstr("list: expected a list, got an object"));
  EXPECT_THAT(error("\"list\": [1, 11]"), HasSubstr("list.1: out of range: expected 0 to 10, got 11"));
  EXPECT_THAT(error("\"link\": []"), HasSubstr("link: expected an object, got a list"));
  EXPECT_THAT(error("\"size\": \"32 B\""), HasSubstr("size: out of range: expected 64 B to 1 MiB, got 32 B"));
  EXPECT_THAT(error("\"size\": \"4 KB\""), HasSubstr("unknown unit \"KB\""));
  EXPECT_THAT(error("\"link\": {\"latency\": \"2 ms\"}"),
              HasSubstr("link.latency: out of range: expected 0 ps to 1 ms, got 2 ms"));
  EXPECT_THAT(error("\"link\": {\"latency\": \"-2 ns\"}"), HasSubstr("link.latency: cannot read"));
  EXPECT_THAT(error("\"by_name\": {\"a.b\": {\"x\": 1}}"),
              HasSubstr("by_name.a\\.b: unknown key \"x\"; known here: latency, rate"));
  EXPECT_THAT(error("\"link\": {\"latency\": \"never\"}"), HasSubstr("link.latency: cannot read"));
}

TEST(ReadConfig, AMissingRequiredFieldIsReportedAtItsObject) {
  EXPECT_EQ(errors_of("\n {}"), "t.json:2:2: need: is missing and has no default\n");
}

TEST(ToJson, EffectiveValuesReadBackTheSame) {
  Everything e;
  ASSERT_EQ(errors_of(R"({"need": "y", "links": [{}], "timeout": "1 us", "by_name": {"k": {"latency": "5 ns"}}})", &e),
            "");
  const Json j = sim::to_json(e);
  EXPECT_EQ(*j.find("limit"), Json("never"));
  EXPECT_EQ(*j.at("/link/latency"), Json("150 ns"));
  Everything again;
  ConfigErrors errors;
  sim::read_config(j, again, errors);
  EXPECT_TRUE(errors.empty()) << errors.text();
  EXPECT_EQ(sim::to_json(again).dump(), j.dump());
}

TEST(DescribeConfig, KnowsTypeRangeDefaultAndProvenance) {
  const sim::TypeInfo t = sim::describe_config<Everything>();
  const auto field = [&](const std::string& name) {
    return *std::ranges::find_if(t.fields, [&](const sim::FieldInfo& f) { return f.name == name; });
  };
  EXPECT_EQ(field("size").type.text(), "size");
  EXPECT_EQ(sim::range_text(*field("size").range, field("size").type.kind), "64 B to 1 MiB");
  EXPECT_EQ(field("mode").type.text(), "one of off, translated");
  EXPECT_EQ(field("list").type.text(), "list of integer");
  EXPECT_EQ(field("by_name").type.element->fields.at(0).initial, Json("150 ns"));
  EXPECT_TRUE(field("timeout").optional);
  EXPECT_TRUE(field("need").initial.is_null());
  EXPECT_EQ(field("link").type.fields.at(1).provenance.kind, sim::Provenance::spec);
}

struct Step {
  std::string op;
  std::vector<Step> body;
  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("op", c.op, "", sim::required());
    v("body", c.body, "", sim::assumed(""));
  }
};

TEST(DescribeConfig, AStructureThatContainsItselfEnds) {
  const sim::TypeInfo t = sim::describe_config<Step>();
  EXPECT_TRUE(t.fields.at(1).type.element->fields.empty());
}

}  // namespace
