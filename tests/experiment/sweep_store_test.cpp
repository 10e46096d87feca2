// SPDX-License-Identifier: Apache-2.0
#include "experiment/sweep_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/experiment/sweep_files.h"

namespace experiment {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

struct Store : SweepFiles {
  SweepPlan plan(const std::vector<std::string>& vary = {"workloads.0.size=64 B,128 B,256 B",
                                                         "workloads.0.completion=poll,event"}) const {
    SweepRequest r;
    r.file = scenario("{}");
    r.vary = vary;
    return plan_sweep(r);
  }
  static SweepSample sample(const SweepPlan& p) {
    SweepSample s;
    s.verdict = "ok";
    s.as_expected = true;
    s.sim_time_ns = 12.5;
    s.wall_s = 0.25;
    s.metrics.assign(p.metrics.size(), 0.1);
    s.metrics[1].reset();
    s.flows.push_back({"stream", 10, 800, {{"wire", 400, 401}, {"poll", 20, 21}}, {{0, 700}, {0.5, 800}, {1, 900}}});
    return s;
  }
  static std::string error(const std::function<void()>& f) {
    try {
      f();
      return "none";
    } catch (const std::exception& e) {
      return e.what();
    }
  }
};

TEST_F(Store, KeepsWhatAPointFound) {
  const SweepPlan p = plan();
  SweepStore store = SweepStore::create(dir, p);
  EXPECT_EQ(store.unfinished().size(), 6u);
  store.finish(4, sample(p));
  EXPECT_EQ(store.unfinished(), (std::vector<std::uint64_t>{0, 1, 2, 3, 5}));
  const SweepRow row = store.rows()[4];
  EXPECT_EQ(row.verdict, "ok");
  EXPECT_EQ(row.values[0], 256.0) << "bytes";
  EXPECT_EQ(row.values[1], std::nullopt);
  EXPECT_EQ(row.texts, (std::vector<std::string>{"256 B", "poll"}));
  EXPECT_EQ(row.metrics[0], 0.1) << "to the last bit";
  EXPECT_EQ(row.metrics[1], std::nullopt);
  EXPECT_EQ(row.wall_s, 0.25);
  EXPECT_EQ(row.config_hash, p.points[4].config_hash);
  Statement view(store.database(),
                 "SELECT size_bytes, completion, verdict, message_rate_mpps FROM result WHERE point = 4");
  ASSERT_TRUE(view.step());
  EXPECT_EQ(view.real(0), 256);
  EXPECT_EQ(view.text(1), "poll");
  EXPECT_EQ(view.real(3), 0.1);
  Statement stages(store.database(), "SELECT stage, p50_ns FROM breakdown WHERE point = 4 ORDER BY position");
  ASSERT_TRUE(stages.step());
  EXPECT_EQ(stages.text(0), "wire");
  EXPECT_EQ(stages.real(1), 401);
}

TEST_F(Store, TakesNoPointTwice) {
  const SweepPlan p = plan();
  SweepStore store = SweepStore::create(dir, p);
  store.finish(0, sample(p));
  EXPECT_THAT(error([&] { store.finish(0, sample(p)); }), HasSubstr("point 0 is there already"));
  EXPECT_EQ(store.rows()[0].metrics.size(), p.metrics.size()) << "the refused one left nothing";
}

TEST_F(Store, GoesOnWithTheSameSweepAlone) {
  const SweepPlan p = plan();
  SweepStore::create(dir, p).finish(1, sample(p));
  EXPECT_EQ(SweepStore::resume(dir, p).unfinished().size(), 5u);
  EXPECT_THAT(error([&] { SweepStore::resume(dir, plan({"workloads.0.size=64 B,128 B"})); }),
              AllOf(HasSubstr("is of another sweep"), HasSubstr("parameters: it has"),
                    HasSubstr("points: it has 6, this sweep 2")));
  SweepPlan other = p;
  other.scenario_hash = "0";
  other.config["seed"] = 3;
  EXPECT_THAT(error([&] { SweepStore::resume(dir, other); }),
              AllOf(HasSubstr("scenario hash"), HasSubstr("its \"seed\" is another one")));
}

TEST_F(Store, AFileThatIsNoDatabaseIsLeftAlone) {
  const fs::path file = write(kSweepDatabase, std::string(5000, 'x'));
  EXPECT_THAT(error([&] { SweepStore::resume(dir, plan()); }), HasSubstr("it is damaged, or no database"));
  EXPECT_EQ(slurp(file), std::string(5000, 'x'));
}

TEST_F(Store, ADamagedDatabaseIsRefused) {
  const SweepPlan p = plan({"workloads.0.iters=1..400"});
  {
    SweepStore store = SweepStore::create(dir, p);
    store.settle();
  }
  const std::string whole = slurp(dir / kSweepDatabase);
  std::string broken = whole;
  for (std::size_t i = 4096; i + 64 < broken.size(); i += 4096) broken.replace(i, 64, std::string(64, '\xff'));
  write(kSweepDatabase, broken);
  EXPECT_THAT(error([&] { SweepStore::resume(dir, p); }), HasSubstr("it is damaged"));
}

TEST_F(Store, AFullDiskLosesNothing) {
  const SweepPlan p = plan({"workloads.0.iters=1..400"});
  SweepStore store = SweepStore::create(dir, p);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = 400'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::uint64_t stored = 0;
  const std::string why = error([&] {
    for (; stored < 400; ++stored) store.finish(stored, sample(p));
  });
  EXPECT_NE(why, "none") << "400 points do not fit";
  EXPECT_GT(stored, 3u);
  EXPECT_THAT(why, HasSubstr(kSweepDatabase));
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  SweepStore again = SweepStore::resume(dir, p);
  EXPECT_EQ(again.unfinished().size(), 400 - stored) << "what was reported as stored is there, and no more";
  again.finish(stored, sample(p));
}

TEST_F(Store, AnEmptyDatabaseOfAKilledSweepIsBegunAnew) {
  write(kSweepDatabase, "");
  EXPECT_EQ(SweepStore::resume(dir, plan()).unfinished().size(), 6u);
}

TEST_F(Store, AReaderDoesNotDisturbTheEnd) {
  const SweepPlan p = plan();
  SweepStore store = SweepStore::create(dir, p);
  Database reader(dir / kSweepDatabase, Database::Mode::read);
  Statement all(reader, "SELECT count(*) FROM point");
  ASSERT_TRUE(all.step());
  store.finish(0, sample(p));
  EXPECT_EQ(error([&] { store.settle(); }), "none");
  EXPECT_EQ(SweepStore::resume(dir, p).unfinished().size(), 5u);
}

TEST_F(Store, AReadOnlyDirectoryIsAClearError) {
  if (getuid() != 0) GTEST_SKIP() << "needs root, to become somebody who may not write";
  const SweepPlan p = plan();
  int out[2];
  ASSERT_EQ(pipe(out), 0);
  fs::permissions(dir, fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  const pid_t child = fork();
  if (child == 0) {
    if (setresuid(65534, 65534, 65534) != 0) _exit(2);
    const std::string why = error([&] { DirectoryLock lock(dir); }) + "\n" + error([&] { SweepStore::create(dir, p); });
    (void)!::write(out[1], why.data(), why.size());
    _exit(0);
  }
  close(out[1]);
  char text[1000] = {};
  (void)!::read(out[0], text, sizeof text - 1);
  waitpid(child, nullptr, 0);
  EXPECT_THAT(text, AllOf(HasSubstr("sweep.lock: cannot be written: Permission denied"),
                          HasSubstr("sweep.sqlite: cannot be opened")));
}

TEST_F(Store, TheLockKeepsOthersOutAndGoesWithItsProcess) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const DirectoryLock mine(dir);
    (void)!::write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char c = 0;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  EXPECT_THAT(error([&] { DirectoryLock second(dir); }),
              AllOf(HasSubstr("another sweep is at work in it"), HasSubstr("process " + std::to_string(child))));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(error([&] { DirectoryLock second(dir); }), "none");
}

}  // namespace
}  // namespace experiment
