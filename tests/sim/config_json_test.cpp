// SPDX-License-Identifier: Apache-2.0
// Text to tree: positions, every kind of unreadable input, printing, pointers, merge and --set.
#include "sim/config_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace {

using sim::ConfigErrors;
using sim::Json;
using testing::HasSubstr;

Json parsed(std::string_view text) {
  ConfigErrors errors;
  const auto j = sim::parse_json(text, "t.json", errors);
  EXPECT_TRUE(errors.empty()) << errors.text();
  return j.value_or(Json{});
}
std::string error_of(std::string_view text) {
  ConfigErrors errors;
  EXPECT_FALSE(sim::parse_json(text, "t.json", errors));
  return errors.text();
}
std::string file_error(const std::filesystem::path& p) {
  ConfigErrors errors;
  EXPECT_FALSE(sim::load_json(p, errors));
  return errors.text();
}
std::filesystem::path temporary(const std::string& name) {
  return std::filesystem::temp_directory_path() / ("rdmasim_config_json_" + std::to_string(getpid()) + "_" + name);
}

TEST(ParseJson, RecordsLineAndColumnOfEachKeyAndValue) {
  const Json j = parsed("// head\n{ \"a\": 1, /* x\n */ \"bé\": [true,\n  \"é\", {\"c\": null}] }\n");
  EXPECT_EQ(j.origin.text(), "t.json:2:1");
  EXPECT_EQ(j.members()[0].key_origin.text(), "t.json:2:3");
  EXPECT_EQ(j.find("a")->origin.text(), "t.json:2:8");
  EXPECT_EQ(j.members()[1].key_origin.text(), "t.json:3:5");
  EXPECT_EQ(j.find("bé")->origin.text(), "t.json:3:11");
  EXPECT_EQ(j.at("/bé/0")->origin.text(), "t.json:3:12");
  EXPECT_EQ(j.at("/bé/1")->origin.text(), "t.json:4:3");
  EXPECT_EQ(j.at("/bé/2")->origin.text(), "t.json:4:8");
  EXPECT_EQ(j.at("/bé/2/c")->origin.text(), "t.json:4:14");
}

TEST(ParseJson, PositionsSurviveStringsWithBracesEscapesAndAByteOrderMark) {
  const Json j = parsed("\xEF\xBB\xBF{\"a\\\"{,:\": \"}\\\\\", \"b\":-1.5e3}");
  EXPECT_EQ(j.members()[0].value.string(), "}\\");
  EXPECT_EQ(j.members()[1].key_origin.text(), "t.json:1:19");
  EXPECT_EQ(j.find("b")->origin.text(), "t.json:1:23");
  EXPECT_EQ(j.find("b")->number(), -1500);
}

TEST(ParseJson, BrokenJsonIsReportedAtTheOffendingToken) {
  EXPECT_THAT(error_of("{\n  \"a\": 1\n  \"b\": 2\n}"), HasSubstr("t.json:3:3: broken JSON: "));
  EXPECT_THAT(error_of("{\n  \"a\": 1,\n}"), HasSubstr("t.json:3:1: broken JSON: "));
  EXPECT_THAT(error_of("{\n  \"a\": tru\n}"), HasSubstr("t.json:2:8: broken JSON: "));
  EXPECT_THAT(error_of("{ \"a\": [1, 2"), HasSubstr("t.json:1:13: broken JSON: "));
  EXPECT_THAT(error_of("{} x"), HasSubstr("t.json:1:4: broken JSON: "));
  EXPECT_THAT(error_of("{\"a\": \"x\n\"}"), HasSubstr("t.json:1:7: broken JSON: "));
  EXPECT_THAT(error_of("{\"a\": 1e999}"), HasSubstr("t.json:1:7: broken JSON: "));
  EXPECT_THAT(error_of("{\"a\": 1} /* open"), HasSubstr("broken JSON: "));
  EXPECT_THAT(error_of(std::string_view("{\"a\":\0}", 7)), HasSubstr("t.json:1:6: broken JSON: "));
}

TEST(ParseJson, TheMessageDoesNotRepeatTheTextReadSoFar) {
  const std::string e = error_of("{\"a\": \"" + std::string(10000, 'x'));
  EXPECT_LT(e.size(), 300u) << e;
}

TEST(ParseJson, DuplicateKeysAreAllReported) {
  const std::string e = error_of("{\"a\": 1,\n \"a\": 2, \"o\": {\"a\": 1,\n \"a\": 3}}");
  EXPECT_EQ(e,
            "t.json:2:2: duplicate key \"a\" (first at line 1)\nt.json:3:2: duplicate key \"a\" (first at line 2)\n");
}

TEST(ParseJson, BytesThatAreNotUtf8AreLocated) {
  EXPECT_THAT(error_of("{\n \"a\": \"\xff\"}"), HasSubstr("t.json:2:8: not UTF-8 text (byte 0xff)"));
  EXPECT_THAT(error_of("{\"a\": \"\xc0\x80\"}"), HasSubstr("t.json:1:8: not UTF-8"));      // overlong
  EXPECT_THAT(error_of("{\"a\": \"\xed\xa0\x80\"}"), HasSubstr("t.json:1:8: not UTF-8"));  // surrogate
  EXPECT_THAT(error_of("\xff\xfe{\0}\0"), HasSubstr("t.json:1:1: not UTF-8"));             // UTF-16
}

TEST(ParseJson, DeepNestingIsRefused) {
  EXPECT_THAT(error_of(std::string(1'000'000, '[')), HasSubstr("t.json:1:101: nested more than 100 levels deep"));
}

TEST(ParseJson, EmptyTextIsRefused) { EXPECT_THAT(error_of(" \n"), HasSubstr("t.json: is empty")); }

TEST(LoadJson, WhatCannotBeReadIsReportedWithThePath) {
  EXPECT_THAT(file_error("/nonexistent/x.json"), HasSubstr("/nonexistent/x.json: cannot be read: No such file"));
  EXPECT_THAT(file_error("/tmp"), HasSubstr("/tmp: is a directory; expected a JSON file"));
}

TEST(LoadJson, AHundredMegabyteFileIsRefusedUnread) {
  const auto p = temporary("big.json");
  std::ofstream(p).close();
  std::filesystem::resize_file(p, 100 << 20);
  EXPECT_THAT(file_error(p), HasSubstr("big.json: is 104857600 bytes large; files up to 64 MiB are read"));
  std::filesystem::remove(p);
}

TEST(Json, PrintsAndReadsBackTheSameValue) {
  const Json j = parsed(
      R"({"i": -3, "u": 18446744073709551615, "d": 0.1, "s": "a\u0001\"\\\né", "n": null, "b": [true, []], "o": {}})");
  EXPECT_EQ(
      j.compact(),
      R"({"i": -3, "u": 18446744073709551615, "d": 0.1, "s": "a\u0001\"\\\né", "n": null, "b": [true, []], "o": {}})");
  EXPECT_EQ(parsed(j.dump(10)), j);
  EXPECT_EQ(parsed("{\"a\":[1,2],\"b\":3}").dump(12), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": 3\n}");
}

TEST(Json, PointersFollowRfc6901) {
  const Json j = parsed(R"({"a/b": [10, {"m~n": 1}], "": 5})");
  EXPECT_EQ(*j.at("/a~1b/1/m~0n"), Json(1));
  EXPECT_EQ(*j.at("/"), Json(5));
  EXPECT_EQ(j.at(""), &j);
  EXPECT_EQ(j.at("/a~1b/2"), nullptr);
  EXPECT_EQ(j.at("/a~1b/01"), nullptr);
  EXPECT_EQ(j.at("/a~1b/0/x"), nullptr);
  EXPECT_NE(Json::pointer_error("a/b"), "");
  EXPECT_NE(Json::pointer_error("/a~2"), "");
}

TEST(Json, EqualityIsByValue) {
  EXPECT_EQ(parsed("[1, 2.5, {\"a\": 1, \"b\": 2}]"), parsed("[1.0, 2.5, {\"b\": 2, \"a\": 1}]"));
  EXPECT_FALSE(parsed("18446744073709551615") == parsed("-1"));
  EXPECT_FALSE(parsed("[1]") == parsed("[1, 2]"));
  EXPECT_FALSE(parsed("\"1\"") == parsed("1"));
}

TEST(Merge, ObjectsMergeAndEverythingElseReplaces) {
  Json base = parsed(R"({"a": {"x": 1, "y": 2}, "l": [1, 2, 3], "s": "old"})");
  sim::merge(base, parsed(R"({"a": {"y": 3, "z": 4}, "l": [9], "n": {"k": 1}})"));
  EXPECT_EQ(base, parsed(R"({"a": {"x": 1, "y": 3, "z": 4}, "l": [9], "s": "old", "n": {"k": 1}})"));
}

std::string set(Json& j, const std::string& assignment, const Json& defaults = Json::object()) {
  ConfigErrors errors;
  sim::apply_set(j, assignment, defaults, errors);
  return errors.text();
}

TEST(ApplySet, ValuesAreJsonOrElseStrings) {
  Json j = parsed(R"({"hosts": [{"x": 1}, {"x": 2}]})");
  EXPECT_EQ(set(j, "hosts.1.x=7"), "");
  EXPECT_EQ(set(j, "hosts[0].x=250 ns"), "");
  EXPECT_EQ(set(j, "new.deep.key=true"), "");
  EXPECT_EQ(set(j, "list=[1, 2]"), "");
  EXPECT_EQ(set(j, "text=\"12\""), "");
  EXPECT_EQ(set(j, "empty="), "");
  EXPECT_EQ(set(j, "a\\.b=1"), "");
  EXPECT_EQ(
      j, parsed(R"({"hosts": [{"x": "250 ns"}, {"x": 7}], "new": {"deep": {"key": true}}, "list": [1, 2], "text": "12",
                          "empty": "", "a.b": 1})"));
  EXPECT_EQ(j.at("/hosts/1/x")->origin.text(), "--set hosts.1.x=7");
}

TEST(ApplySet, ReachesElementsOfDefaultLists) {
  Json j = Json::object();
  EXPECT_EQ(set(j, "hosts.1.x=7", parsed(R"({"hosts": [{"x": 1, "y": 5}, {"x": 2, "y": 6}]})")), "");
  EXPECT_EQ(j, parsed(R"({"hosts": [{"x": 1, "y": 5}, {"x": 7, "y": 6}]})"));
}

TEST(ApplySet, MistakesNameTheFlag) {
  Json j = parsed(R"({"hosts": [{"x": 1}], "s": "v"})");
  EXPECT_EQ(set(j, "nonsense"), "--set nonsense: expected PATH=VALUE, such as --set seed=7\n");
  EXPECT_EQ(set(j, "=3"), "--set =3: expected PATH=VALUE, such as --set seed=7\n");
  EXPECT_EQ(set(j, "a..b=3"), "--set a..b=3: expected PATH=VALUE, such as --set seed=7\n");
  EXPECT_EQ(set(j, "hosts.2.x=3"), "--set hosts.2.x=3: hosts: has 1 elements; there is no element 2\n");
  EXPECT_EQ(set(j, "hosts.b.x=3"), "--set hosts.b.x=3: hosts: is a list: expected an index from 0, got \"b\"\n");
  EXPECT_EQ(set(j, "s.t=3"), "--set s.t=3: s: is the string \"v\" and has no \"t\"\n");
  EXPECT_THAT(set(j, "s={\"a\": }"), HasSubstr("--set s={\"a\": }: broken JSON: "));
}

TEST(DidYouMean, FindsNearWordsOnly) {
  const std::vector<std::string> words{"rx_latency", "tx_latency", "mtu"};
  EXPECT_EQ(sim::nearest("rx_latncy", words), "rx_latency");
  EXPECT_EQ(sim::nearest("mut", words), "mtu");
  EXPECT_EQ(sim::nearest("colour", words), "");
}

}  // namespace
