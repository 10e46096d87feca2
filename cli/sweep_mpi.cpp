// SPDX-License-Identifier: Apache-2.0
// `rdmasim-mpi sweep`, under mpirun: rank 0 has the database and hands out points, one at a time to each other rank, which runs it
// in a process of its own. A rank that falls silent is given up, and its point goes to another one.
#include <mpi.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <systemc>
#include <utility>

#include "cli/options.h"
#include "cli/sweep.h"
#include "experiment/stop_scope.h"

#ifdef __SANITIZE_ADDRESS__
// As for rdmasim; Open MPI leaves more.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

namespace {

using Clock = std::chrono::steady_clock;
using experiment::SweepPlan;
using experiment::SweepRunOptions;
using experiment::SweepSample;

enum Tag : int { kAsk = 1, kBeat, kResult, kWork };
constexpr std::uint64_t kNoMore = ~0ULL;
constexpr std::uint64_t kNoMoreAndNoFarewell = kNoMore - 1;  // ranks are missing: MPI_Finalize() would wait for them
constexpr std::chrono::seconds kSilence{10};                 // ten beats

/// A message that has come.
struct Message {
  int rank = 0, tag = 0;
  std::string bytes;
};

std::optional<Message> receive() {
  int there = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS || there == 0)
    return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  Message m{status.MPI_SOURCE, status.MPI_TAG, std::string(static_cast<std::size_t>(size), '\0')};
  if (MPI_Recv(m.bytes.data(), size, MPI_BYTE, m.rank, m.tag, MPI_COMM_WORLD, &status) != MPI_SUCCESS)
    return std::nullopt;
  return m;
}

bool send(int rank, Tag tag, const std::string& bytes) {
  return MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, rank, tag, MPI_COMM_WORLD) == MPI_SUCCESS;
}

std::string as_bytes(std::uint64_t n) { return {reinterpret_cast<const char*>(&n), sizeof n}; }
std::uint64_t number_in(const std::string& bytes) {
  std::uint64_t n = kNoMore;
  if (bytes.size() >= sizeof n) std::memcpy(&n, bytes.data(), sizeof n);
  return n;
}

/// Half a millisecond, in which signals come in.
void pause(const experiment::StopScope& stop) {
  const timespec t{0, 500'000};
  ppoll(nullptr, 0, &t, &stop.waiting_mask());
}

class MpiDriver final : public cli::SweepDriver {
 public:
  MpiDriver(int rank, int ranks) : rank_(rank), ranks_(ranks) {}

  bool owner() const override { return rank_ == 0; }
  /// Whether MPI_Finalize() would wait for ranks that are no more.
  bool lost_ranks() const { return lost_ > 0; }

  bool run(const SweepPlan& plan, const std::vector<std::uint64_t>& points, experiment::SweepStore& store,
           const SweepRunOptions& options) override {
    const experiment::StopScope stop;
    const auto begin = Clock::now();
    std::deque<std::uint64_t> queue(points.begin(), points.end());
    experiment::SweepProgress progress;
    progress.total = points.size();
    for (int r = 1; r < ranks_; ++r) workers_[r].heard = Clock::now();
    while (progress.done < progress.total && !stop.asked()) {
      if (const auto m = receive()) {
        workers_[m->rank].heard = Clock::now();
        if (m->tag == kAsk) workers_[m->rank].idle = true;
        if (m->tag == kResult && take(plan, store, *m, queue, progress) && options.progress) {
          progress.elapsed_s = std::chrono::duration<double>(Clock::now() - begin).count();
          options.progress(progress);
        }
        continue;
      }
      hand_out(queue);
      give_up_silent_ranks(queue);
      if (workers_.empty()) throw std::runtime_error("no rank is left to run points; --resume runs what is missing");
      pause(stop);
    }
    return stop.asked();
  }

  void serve(const SweepPlan& plan, const SweepRunOptions& options) override {
    for (;;) {
      const auto point = ask();
      if (!point) return;
      if (!make(plan, *point, options)) return;
    }
  }

  /// Lets the other ranks go; in the owner.
  void dismiss() {
    for (int r = 1; r < ranks_; ++r)
      if (!gone(r)) send(r, kWork, as_bytes(lost_ > 0 ? kNoMoreAndNoFarewell : kNoMore));
  }

 private:
  struct Worker {
    Clock::time_point heard;
    bool idle = false;
    std::optional<std::uint64_t> point;
  };

  bool gone(int rank) const { return lost_ > 0 && !workers_.contains(rank); }

  /// Stores a result, once; true when it is a new one.
  bool take(const SweepPlan& plan, experiment::SweepStore& store, const Message& m, std::deque<std::uint64_t>& queue,
            experiment::SweepProgress& progress) {
    const std::uint64_t point = number_in(m.bytes);
    workers_[m.rank].point.reset();
    const auto sample = experiment::sample_from(m.bytes.substr(sizeof point));
    if (!sample || finished_.contains(point)) return false;
    experiment::check_configuration(plan, point, *sample);
    store.finish(point, *sample);
    finished_.insert(point);
    std::erase(queue, point);  // it had been given up, and came all the same
    ++progress.done;
    if (sample->verdict != "ok") ++progress.not_ok;
    return true;
  }

  void hand_out(std::deque<std::uint64_t>& queue) {
    for (auto& [rank, w] : workers_) {
      if (!w.idle || queue.empty()) continue;
      w.idle = false;
      if (!send(rank, kWork, as_bytes(queue.front()))) continue;  // silence will tell
      w.point = queue.front();
      queue.pop_front();
    }
  }

  void give_up_silent_ranks(std::deque<std::uint64_t>& queue) {
    std::erase_if(workers_, [&](const auto& entry) {
      const Worker& w = entry.second;
      if (Clock::now() - w.heard < kSilence) return false;
      std::cerr << "rdmasim: rank " << entry.first << " has fallen silent and is given up\n";
      ++lost_;
      if (w.point && !finished_.contains(*w.point)) queue.push_front(*w.point);
      return true;
    });
  }

  /// The next point for this rank; nothing when there is no more.
  std::optional<std::uint64_t> ask() {
    const experiment::StopScope stop;
    send(0, kAsk, {});
    for (auto beat = Clock::now(); !stop.asked(); pause(stop)) {
      if (const auto m = receive()) {
        const std::uint64_t point = number_in(m->bytes);
        if (point == kNoMoreAndNoFarewell) ++lost_;
        return point >= kNoMoreAndNoFarewell ? std::nullopt : std::optional(point);
      }
      if (Clock::now() - beat < std::chrono::seconds(1)) continue;
      beat = Clock::now();
      send(0, kBeat, {});
    }
    return std::nullopt;
  }

  /// Runs a point and sends what came of it; false when a signal ended it.
  bool make(const SweepPlan& plan, std::uint64_t point, const SweepRunOptions& options) {
    bool left = true;
    experiment::JobPool pool;
    pool.limit = std::chrono::duration<double>(options.limit_s);
    pool.next = [&] { return std::exchange(left, false) ? std::optional<std::size_t>(0) : std::nullopt; };
    pool.work = [&](std::size_t) { return to_text(run_point(plan, plan.points[point])); };
    pool.ended = [&](const experiment::JobEnd& end) {
      send(0, kResult, as_bytes(point) + to_text(sample_of(end, options.limit_s)));
    };
    pool.tick = [] { send(0, kBeat, {}); };
    return !experiment::run_jobs(pool);
  }

  int rank_, ranks_;
  int lost_ = 0;  // ranks given up; in a worker: whether there are any
  std::map<int, Worker> workers_;
  std::set<std::uint64_t> finished_;
};

int sweep_under_mpi(const cli::Arguments& arguments) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank != 0) std::cerr.setstate(std::ios::failbit);  // rank 0 tells of mistakes for all
  MpiDriver driver(rank, ranks);
  const int code = cli::guarded([&] {
    if (ranks < 2)
      throw cli::UsageError(
          "rdmasim-mpi needs at least two ranks (mpirun -n 2 or more); on one machine use rdmasim sweep");
    if (arguments.empty() || arguments.front() != "sweep")
      throw cli::UsageError("rdmasim-mpi knows one command, sweep; use rdmasim for all others");
    return cli::sweep_with({arguments.begin() + 1, arguments.end()}, driver);
  });
  if (rank == 0) driver.dismiss();
  if (driver.lost_ranks()) {
    std::cout.flush();
    _exit(code);
  }
  return code;
}

}  // namespace

int sc_main(int argc, char** argv) { return sweep_under_mpi({argv + 1, argv + argc}); }

int main(int argc, char** argv) {
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  MPI_Init(&argc, &argv);
  const int code = sc_core::sc_elab_and_sim(argc, argv);
  MPI_Finalize();
  return code;
}
