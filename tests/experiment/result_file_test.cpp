// SPDX-License-Identifier: Apache-2.0
// Results that are read back: what a run wrote is accepted whole, anything else is refused with file, place and pointer.
#include "experiment/result_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/experiment/child_result.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ResultFile : public testing::Test {
 protected:
  ResultFile() : dir_(fs::temp_directory_path() / ("rdmasim_result_file_" + std::to_string(getpid()))) {
    fs::create_directories(dir_);
  }
  ~ResultFile() override { fs::remove_all(dir_); }

  fs::path write(const std::string& text) {
    std::ofstream(dir_ / "result.json") << text;
    return dir_ / "result.json";
  }
  std::string refusal(const std::string& text) {
    const fs::path file = write(text);
    try {
      experiment::load_result(file);
    } catch (const sim::ConfigFailure& e) {
      EXPECT_THAT(e.what(), HasSubstr(file.string()));
      return e.what();
    }
    return "accepted";
  }
  static sim::Json result() {
    return experiment::result_of(fs::path(RDMASIM_SOURCE_DIR) / "scenarios/cases/zero_length_receive.json");
  }

  fs::path dir_;
};

TEST_F(ResultFile, WhatARunWroteIsReadFromFileAndDirectory) {
  const sim::Json r = result();
  const fs::path file = write(r.dump());
  EXPECT_EQ(experiment::load_result(file), r);
  EXPECT_EQ(experiment::load_result(dir_), r);
}

TEST_F(ResultFile, WhatIsNoResultIsRefused) {
  EXPECT_THAT(refusal("{"), HasSubstr("result.json:1:"));
  EXPECT_THAT(refusal("[1, 2]"), HasSubstr("/schema: is not a result"));
  EXPECT_THAT(refusal(R"({"workloads": []})"), HasSubstr("it has no member \"schema\""));
  EXPECT_THAT(refusal(R"({"schema": "rdmasim-result/2"})"),
              HasSubstr("expected \"rdmasim-result/1\", the version that this rdmasim reads, got the string "
                        "\"rdmasim-result/2\""));
  EXPECT_THAT(refusal(R"({"schema": 1})"), HasSubstr("got the number 1"));
}

TEST_F(ResultFile, MissingMembersAreToldByTheirPointers) {
  sim::Json r = result();
  r.erase("config");
  r.find("programs")->find("client")->erase("completions");
  const std::string text = refusal(r.dump());
  EXPECT_THAT(text, HasSubstr("/config: is missing"));
  EXPECT_THAT(text, HasSubstr("/programs/client/completions: is missing"));
}

TEST_F(ResultFile, MembersOfAnotherTypeAreToldByTheirPointers) {
  sim::Json r = result();
  *r.find("counters")->find("host0.hca.requester.timeouts") = "many";
  *r.find("programs")->find("client")->find("completions")->items()[2].find("wr_id") = "two";
  const std::string text = refusal(r.dump());
  EXPECT_THAT(text, HasSubstr("/counters/host0.hca.requester.timeouts: expected a number, got the string \"many\""));
  EXPECT_THAT(text, HasSubstr("/programs/client/completions/2/wr_id: expected a number"));
}

}  // namespace
