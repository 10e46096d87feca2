// SPDX-License-Identifier: Apache-2.0
// What is generated from a description: parameter list, reference page, JSON Schema.
#include "sim/config_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using sim::Json;
using testing::HasSubstr;

struct Port {
  std::uint32_t lanes = 4;
  sim::Picos latency{2000};
  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("lanes", c.lanes, "lanes | links", sim::spec("base spec 4.2"), sim::Range{1, 16});
    v("latency", c.latency, "one way", sim::measured("probe"), sim::Range{0, 1e6});
  }
};
struct Box {
  std::string name;
  Port port;
  std::vector<Port> ports;
  std::map<std::string, std::uint32_t> limits;
  std::optional<sim::Bytes> cache;
  sim::Picos timeout = sim::kNever;
  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("name", c.name, "its name", sim::required());
    v("port", c.port, "the port", sim::assumed("x"));
    v("ports", c.ports, "more ports", sim::assumed("none"));
    v("limits", c.limits, "by name", sim::assumed("none"), sim::Range{0, 9});
    v("cache", c.cache, "cache", sim::assumed("no cache"));
    v("timeout", c.timeout, "timeout", sim::assumed("waits"));
  }
};

TEST(ListParameters, NamesEachLeafWithTypeDefaultAndRange) {
  std::vector<std::string> lines;
  for (const sim::Parameter& p : sim::list_parameters(sim::describe_config<Box>()))
    lines.push_back(p.path + "|" + p.type + "|" + p.initial + "|" + p.range);
  EXPECT_THAT(lines, testing::ElementsAre("name|string||", "port.lanes|integer|4|1 to 16",
                                          "port.latency|time|2 ns|0 ps to 1 us", "ports|list of object|[]|",
                                          "ports[].lanes|integer|4|1 to 16", "ports[].latency|time|2 ns|0 ps to 1 us",
                                          "limits|map of name to integer|{}|0 to 9", "cache|size|absent|",
                                          "timeout|time|never|"));
}

TEST(MarkdownReference, HasASectionPerMemberAndEscapesBars) {
  const std::string text = sim::markdown_reference(sim::describe_config<Box>(), "Box", "About.");
  EXPECT_THAT(text,
              HasSubstr("# Box\n\nAbout.\n\n## name\n\n| path | type | default | range | meaning | provenance |\n"));
  EXPECT_THAT(text, HasSubstr("| `port.lanes` | integer | 4 | 1 to 16 | lanes \\| links | spec: base spec 4.2 |\n"));
  EXPECT_THAT(text, HasSubstr("| `name` | string |  |  | its name | required |\n"));
}

TEST(JsonSchema, DescribesWhatTheBindingAccepts) {
  const Json s = sim::json_schema(sim::describe_config<Box>(), {"box", "", false, {{"$schema", "schema"}}});
  EXPECT_EQ(*s.at("/title"), Json("box"));
  EXPECT_EQ(*s.at("/additionalProperties"), Json(false));
  EXPECT_EQ(s.at("/required")->compact(), "[\"name\"]");
  EXPECT_EQ(*s.at("/properties/$schema/type"), Json("string"));
  EXPECT_EQ(*s.at("/properties/port/properties/lanes/minimum"), Json(1));
  EXPECT_EQ(*s.at("/properties/port/properties/lanes/maximum"), Json(16));
  EXPECT_EQ(*s.at("/properties/port/properties/latency/default"), Json("2 ns"));
  EXPECT_EQ(*s.at("/properties/ports/items/properties/lanes/type"), Json("integer"));
  EXPECT_EQ(*s.at("/properties/limits/additionalProperties/maximum"), Json(9));
  EXPECT_EQ(*s.at("/properties/cache/anyOf/1/type"), Json("null"));
  EXPECT_THAT(s.at("/properties/timeout/pattern")->string(), testing::StartsWith("^never$|"));
}

TEST(JsonSchema, ADocumentThatIsMergedMayBeIncomplete) {
  EXPECT_EQ(sim::json_schema(sim::describe_config<Box>(), {"box", "", true, {}}).find("required"), nullptr);
}

}  // namespace
