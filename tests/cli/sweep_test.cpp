// SPDX-License-Identifier: Apache-2.0
// `rdmasim sweep` and `rdmasim merge` as users call them, and what is left when they are ended in bad ways.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "cli_fixture.h"

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A sweep of 40 points, each of some milliseconds.
constexpr const char* kSweep = R"({
  "workloads": [{"op": "write_bw", "size": "64 B", "iters": 400}],
  "sweep": {"parameters": [{"path": "workloads.0.size", "values": "1 B..512 B x2"},
                           {"path": "workloads.0.cq_mod", "values": [1, 2, 4, 8]}],
            "expect": [{"holds": "verdict == 'ok'"}]}
})";

class SweepCli : public Cli {
 protected:
  SweepCli() : file_(write("sweep.json", kSweep)) {}

  std::vector<std::string> arguments(const std::string& out, std::vector<std::string> more = {}) const {
    std::vector<std::string> all{"sweep", file_, "--out", dir_ / out, "-j2"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Finished sweep(const std::string& out, const std::vector<std::string>& more = {}) {
    return rdmasim(arguments(out, more));
  }

  /// Rows of a query on a directory's database, columns with "|" between them.
  std::vector<std::string> query(const std::string& out, const std::string& sql) const {
    std::vector<std::string> rows;
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open((dir_ / out / "sweep.sqlite").c_str(), &db), SQLITE_OK);
    char* error = nullptr;
    sqlite3_exec(
        db, sql.c_str(),
        [](void* to, int n, char** values, char**) {
          std::string row;
          for (int i = 0; i < n; ++i)
            row += (i == 0 ? "" : "|") + std::string(values[i] != nullptr ? values[i] : "null");
          static_cast<std::vector<std::string>*>(to)->push_back(row);
          return 0;
        },
        &rows, &error);
    EXPECT_EQ(error, nullptr) << error;
    sqlite3_close(db);
    return rows;
  }
  std::size_t finished(const std::string& out) const {
    return std::stoul(query(out, "SELECT count(*) FROM point WHERE verdict IS NOT NULL").at(0));
  }
  /// Everything that a sweep found out, its own wall time apart.
  std::vector<std::string> content(const std::string& out) const {
    std::vector<std::string> all = query(out,
                                         "SELECT point, seed, verdict, as_expected, why, version, sim_time_ns, "
                                         "config_hash, scenario_hash FROM point ORDER BY point");
    for (const char* table : {"point_value", "point_metric", "flow", "breakdown", "quantile"})
      for (const std::string& row :
           query(out, std::string("SELECT '") + table + "', * FROM " + table + " ORDER BY 2, 3, 4"))
        all.push_back(row);
    return all;
  }
  /// Waits until so many points are stored.
  void await(const std::string& out, std::size_t points) const {
    for (int i = 0; i < 2000; ++i) {
      if (fs::exists(dir_ / out / "sweep.sqlite")) {
        sqlite3* db = nullptr;
        sqlite3_open_v2((dir_ / out / "sweep.sqlite").c_str(), &db, SQLITE_OPEN_READONLY, nullptr);
        std::size_t n = 0;
        sqlite3_exec(
            db, "SELECT count(*) FROM point WHERE verdict IS NOT NULL",
            [](void* to, int, char** values, char**) {
              return *static_cast<std::size_t*>(to) = std::stoul(values[0]), 0;
            },
            &n, nullptr);
        sqlite3_close(db);
        if (n >= points) return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "the sweep does not get on";
  }

  const fs::path file_;
};

TEST_F(SweepCli, WritesADatabaseAndTables) {
  const Finished f = sweep("out");
  EXPECT_EQ(f.code, 0) << f.err;
  EXPECT_THAT(f.out, AllOf(HasSubstr("40 points, grid of 2 parameters"), HasSubstr("ok              40"),
                           HasSubstr("1 of 1 met")));
  EXPECT_THAT(f.err, AllOf(HasSubstr("rdmasim: [##########..........]  50 %  20 of 40 points"), Not(HasSubstr("\r"))))
      << "plain lines where there is no terminal";
  EXPECT_EQ(fs::exists(dir_ / "out/sweep.sqlite-wal"), false) << "one file is left";
  EXPECT_THAT(slurp(dir_ / "out/results.csv"), HasSubstr("\r\n39,39,0,1,512,8,ok,1,"));
  const sim::Json j = parsed(slurp(dir_ / "out/results.json"));
  EXPECT_EQ(j.at("/points")->items().size(), 40u);
  EXPECT_EQ(*j.at("/expectations/0/met"), sim::Json(true));
  EXPECT_EQ(query("out", "SELECT size_bytes, cq_mod, verdict FROM result WHERE point = 7").at(0), "2.0|8.0|ok");
}

TEST_F(SweepCli, PointsAreListedWithoutRunning) {
  const Finished f = rdmasim({"sweep", file_, "--dry-run", "--where", "size >= 256 B", "--replications", "2"});
  EXPECT_EQ(f.code, 0);
  EXPECT_THAT(f.out, AllOf(HasSubstr("0  size=256 B, cq_mod=1, seed 1\n1  size=256 B, cq_mod=1, seed 2\n"),
                           HasSubstr("16 points, and 64 left out by conditions\n")));
}

TEST_F(SweepCli, MistakesAreToldBeforeAnythingRuns) {
  const auto mistake = [&](const std::vector<std::string>& more) {
    const Finished f = sweep("out", more);
    EXPECT_EQ(f.code, 2);
    EXPECT_FALSE(fs::exists(dir_ / "out/sweep.sqlite"));
    return f.err;
  };
  EXPECT_THAT(rdmasim({"sweep", file_}).err, HasSubstr("missing --out DIR"));
  EXPECT_THAT(rdmasim({"sweep", kPingPong, "--out", dir_ / "out"}).err, HasSubstr("nothing varies"));
  EXPECT_THAT(mistake({"--vary", "workloads.0.sise=1 B"}), HasSubstr("did you mean \"size\"?"));
  EXPECT_THAT(mistake({"--vary", "size=8 B..4 B x2"}),
              HasSubstr("--vary size=8 B..4 B x2: size: column 6: the range ends before it begins"));
  EXPECT_THAT(mistake({"--design", "gird"}), HasSubstr("did you mean \"grid\"?"));
  EXPECT_THAT(mistake({"--where", "size > "}), HasSubstr("column 8: expected a value or a name, got the end"));
  EXPECT_THAT(mistake({"--shard", "3/2"}), HasSubstr("--shard: expected K/N with K from 1 to N"));
  EXPECT_THAT(mistake({"--wall-limit", "5"}), HasSubstr("expected a time such as 60s"));
  EXPECT_THAT(mistake({"--points", "5"}), HasSubstr("is for random and latin_hypercube"));
  EXPECT_EQ(rdmasim({"sweep", file_, "--out", "/proc/nothing"}).code, 2);
}

TEST_F(SweepCli, AnUnmetExpectationExitsOne) {
  const Finished f = sweep("out", {"--set", "sweep.expect=[{\"holds\": \"cq_mod < 8\", \"because\": \"to see it\"}]"});
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.out, AllOf(HasSubstr("not met: cq_mod < 8 (to see it)"), HasSubstr("point 3 (size=1 B, cq_mod=8)")));
}

TEST_F(SweepCli, ADirectoryHasOneSweep) {
  ASSERT_EQ(sweep("out", {"--vary", "size=1 B"}).code, 0);
  EXPECT_THAT(sweep("out", {"--vary", "size=1 B"}).err, HasSubstr("has a sweep already: --resume goes on with it"));
  const Finished other = sweep("out", {"--vary", "size=1 B", "--seed", "2", "--resume"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr("is of another sweep"), HasSubstr("seed: it has 1, this sweep 2")));
  const Finished again = sweep("out", {"--vary", "size=1 B", "--resume"});
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(query("out", "SELECT count(*) FROM point").at(0), "4");
}

TEST_F(SweepCli, TwoAtOnceAreRefused) {
  const pid_t first = spawn(arguments("out", {"--set", "workloads.0.iters=1000000000"}));
  await("out", 0);
  const std::string command = std::string(RDMASIM_BINARY) + " sweep " + file_.string() + " --resume --out " +
                              (dir_ / "out").string() + " 2> " + (dir_ / "second").string();
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2);
  EXPECT_THAT(slurp(dir_ / "second"),
              HasSubstr("another sweep is at work in it (process " + std::to_string(first) + ")"));
  kill(first, SIGTERM);
  EXPECT_EQ(wait(first).code, 130);
}

TEST_F(SweepCli, CtrlCKeepsWhatIsFinished) {
  ASSERT_EQ(sweep("whole").code, 0);
  const pid_t pid = spawn(arguments("out"));
  await("out", 5);
  kill(pid, SIGINT);
  const Finished f = wait(pid);
  EXPECT_EQ(f.code, 130);
  EXPECT_THAT(f.err, HasSubstr("interrupted; --resume runs what is missing"));
  const std::size_t kept = finished("out");
  EXPECT_GE(kept, 5u);
  const sim::Json j = parsed(slurp(dir_ / "out/results.json"));
  EXPECT_EQ(j.at("/points")->items().size(), kept);
  EXPECT_EQ(j.at("/missing")->items().size(), 40 - kept);
  const Finished again = sweep("out", {"--resume"});
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, HasSubstr("of " + std::to_string(40 - kept) + " points"));
  EXPECT_EQ(content("out"), content("whole"));
}

TEST_F(SweepCli, KilledAtAnyMomentNothingIsLostOrTwice) {
  ASSERT_EQ(sweep("whole").code, 0);
  std::mt19937 random(7);
  std::size_t before = 0;
  for (int kills = 0; kills < 12; ++kills) {
    const pid_t pid =
        spawn(arguments("out", kills > 0 && fs::exists(dir_ / "out/sweep.sqlite") ? std::vector<std::string>{"--resume"}
                                                                                  : std::vector<std::string>{}));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 120));
    kill(pid, SIGKILL);
    wait(pid);
    if (!fs::exists(dir_ / "out/sweep.sqlite") || query("out", "SELECT count(*) FROM sqlite_master").at(0) == "0")
      continue;
    const std::size_t now = finished("out");
    EXPECT_GE(now, before) << "a point that was there stays";
    before = now;
  }
  const Finished last = sweep(
      "out", fs::exists(dir_ / "out/sweep.sqlite") ? std::vector<std::string>{"--resume"} : std::vector<std::string>{});
  EXPECT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(content("out"), content("whole"));
}

TEST_F(SweepCli, AKilledPointIsACrashAndTheRestGoesOn) {
  const pid_t pid = spawn(arguments(
      "out", {"--vary", "size=8 B", "--vary", "cq_mod=1", "--vary", "workloads.0.iters=1000000000,100,101,102"}));
  await("out", 3);
  std::ifstream children("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  pid_t child = 0;
  ASSERT_TRUE(children >> child);
  kill(child, SIGKILL);
  const Finished f = wait(pid);
  EXPECT_EQ(f.code, 1);
  EXPECT_EQ(query("out", "SELECT verdict FROM point ORDER BY point"),
            (std::vector<std::string>{"crashed", "ok", "ok", "ok"}));
  EXPECT_THAT(f.out, HasSubstr("the simulator was ended by signal 9 (Killed)"));
}

TEST_F(SweepCli, AFullDiskIsAClearErrorAndLosesNothing) {
  ASSERT_EQ(sweep("whole").code, 0);
  const std::string command = "ulimit -f 160; exec " + std::string(RDMASIM_BINARY) + " sweep " + file_.string() +
                              " -j2 --out " + (dir_ / "out").string() + " > /dev/null 2> " + (dir_ / "err").string();
  const int status = std::system(("bash -c '" + command + "'").c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2) << "160 KiB are not enough";
  EXPECT_THAT(slurp(dir_ / "err"), HasSubstr("sweep.sqlite: cannot be"));
  const std::size_t kept = finished("out");
  EXPECT_GT(kept, 0u);
  EXPECT_LT(kept, 40u);
  EXPECT_EQ(sweep("out", {"--resume"}).code, 0);
  EXPECT_EQ(content("out"), content("whole"));
}

TEST_F(SweepCli, ADamagedDatabaseIsRefusedAndLeftAlone) {
  fs::create_directories(dir_ / "out");
  write("out/sweep.sqlite", "this is no database, whatever its name says" + std::string(4000, '.'));
  const Finished f = sweep("out", {"--resume"});
  EXPECT_EQ(f.code, 2);
  EXPECT_THAT(f.err, HasSubstr("sweep.sqlite: "));
  EXPECT_THAT(f.err, HasSubstr("it is damaged, or no database"));
  EXPECT_THAT(slurp(dir_ / "out/sweep.sqlite"), HasSubstr("whatever its name says"));
}

TEST_F(SweepCli, ShardsBecomeOneSweep) {
  ASSERT_EQ(sweep("whole").code, 0);
  EXPECT_EQ(sweep("s1", {"--shard", "1/3"}).code, 0);
  EXPECT_EQ(sweep("s2", {"--shard", "2/3"}).code, 0);
  EXPECT_EQ(finished("s1"), 14u);
  EXPECT_EQ(finished("s2"), 13u);
  const Finished two = rdmasim({"merge", dir_ / "two", dir_ / "s1", dir_ / "s2", dir_ / "s1"});
  EXPECT_EQ(two.code, 1);
  EXPECT_THAT(two.out, AllOf(HasSubstr("27 of 40 points"), HasSubstr("14 were in more than one directory"),
                             HasSubstr("missing: 2, 5, 8")));
  EXPECT_EQ(sweep("s3", {"--shard", "3/3"}).code, 0);
  const Finished all = rdmasim({"merge", dir_ / "all", dir_ / "s3", dir_ / "s1", dir_ / "s2"});
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_EQ(content("all"), content("whole"));
  EXPECT_EQ(sweep("all", {"--resume"}).code, 0) << "looks at the expectations";
  EXPECT_EQ(sweep("two", {"--resume"}).code, 0) << "runs what is missing";
  EXPECT_EQ(content("two"), content("whole"));
}

TEST_F(SweepCli, MergeRefusesWhatIsNotOfOneSweep) {
  ASSERT_EQ(sweep("a", {"--shard", "1/2"}).code, 0);
  ASSERT_EQ(sweep("b", {"--shard", "2/2", "--set", "workloads.0.iters=401"}).code, 0);
  const Finished f = rdmasim({"merge", dir_ / "out", dir_ / "a", dir_ / "b"});
  EXPECT_EQ(f.code, 2);
  EXPECT_THAT(f.err, AllOf(HasSubstr("is of another sweep than"), HasSubstr("scenario hash")));
  EXPECT_FALSE(fs::exists(dir_ / "out/sweep.sqlite"));
  EXPECT_THAT(rdmasim({"merge", dir_ / "out", dir_ / "none"}).err, HasSubstr("there is no sweep.sqlite in it"));
  EXPECT_THAT(rdmasim({"merge", dir_ / "a", dir_ / "b"}).err, HasSubstr("is there already"));
  EXPECT_THAT(rdmasim({"merge", dir_ / "out"}).err, HasSubstr("missing DIR"));
}

TEST_F(SweepCli, ShardsRunUnderGnuParallel) {
  ASSERT_EQ(std::system("parallel --version > /dev/null 2>&1"), 0) << "GNU parallel is missing; ./dev test installs it";
  ASSERT_EQ(sweep("whole").code, 0);
  const std::string out = (dir_ / "shard").string();
  const std::string command = "parallel -j2 " + std::string(RDMASIM_BINARY) + " sweep " + file_.string() +
                              " --quiet -j1 --shard {}/4 --out " + out + "{} ::: 1 2 3 4 > /dev/null 2>&1 < /dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(rdmasim({"merge", dir_ / "out", out + "1", out + "2", out + "3", out + "4"}).code, 0);
  EXPECT_EQ(content("out"), content("whole"));
}

}  // namespace
