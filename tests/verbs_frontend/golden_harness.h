// SPDX-License-Identifier: Apache-2.0
// Replays golden vectors: sets up the objects of a case, poisons all memory that the driver writes, makes the call, and
// compares every byte. Notation of the vectors: hex = written, "--" = not written, ".." = written with what the ring held
// before (stale bytes), "??" = random.
#pragma once

#include <infiniband/verbs.h>

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "fake_kernel.h"
#include "machine_fixture.h"
#include "verbs_frontend/mlx5/ah.h"
#include "verbs_frontend/mlx5/mlx5.h"
#include "verbs_frontend/mlx5/srq.h"

namespace verbs::test {

using Json = nlohmann::json;

inline constexpr std::byte kPoison{0xc7};

/// Records every access of the provider.
struct Recorder : AccessTap {
  struct Event {
    enum Kind { store, load, mmio, barrier, lock, unlock } kind;
    std::uint64_t at = 0;
    std::vector<std::byte> bytes;  ///< of a store
    std::vector<std::byte> old;    ///< what was there
    std::size_t n = 0;
    cpu::Barrier which{};
  };
  std::vector<Event> events;
  bool on = false;
  /// For a store, the old content; the thread's own pending stores included.
  std::map<std::uint64_t, std::byte> shadow;

  void on_store(const void* at, const void* bytes, std::size_t n) override;
  void on_load(const void* at, std::size_t n) override;
  void on_mmio_store(memory::Va at, std::uint64_t bytes) override;
  void on_barrier(cpu::Barrier b) override;
  void on_lock() override;
  void on_unlock() override;
};

/// The objects of one case.
struct Bench {
  Bench(Machine& machine, const Json& setup);
  ~Bench();

  Machine& machine;
  FakeKernel kernel;
  Recorder recorder;
  std::byte* mr = nullptr;  ///< 64 KiB standing for address 0x200000000 of the vectors
  ibv_mr mr_object{};
  ibv_mw mw{};
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq *send_cq = nullptr, *recv_cq = nullptr;
  ibv_srq* srq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_qp* other_qp = nullptr;
  ibv_ah* ah = nullptr;
  ibv_qp_cap granted{};
  std::vector<std::string> problems;
  Json setup_sges = Json::object();  ///< opcode -> SGEs that a preparing WR of that opcode has

  void problem(const std::string& what) { problems.push_back(what); }
  void expect(bool ok, const std::string& what) {
    if (!ok) problem(what);
  }
  template <class T>
  void equal(const T& got, const T& want, const std::string& what) {
    if (!(got == want)) problem(what + ": got " + std::to_string(got) + ", want " + std::to_string(want));
  }

  mlx5::Qp& mqp() { return mlx5::qp_of(qp); }
  mlx5::Srq& msrq() { return mlx5::srq_of(srq); }
  ibv_qp* make_qp(const Json& q);
  /// Posts empty receives to the SRQ, or lets CQEs of the receive CQ complete some.
  void post_shared(unsigned n);
  void complete_shared(std::uint32_t index);
  void to_state(ibv_qp* q, const std::string& state);
  void modify(ibv_qp* q, ibv_qp_state state);
  std::uint64_t local(std::uint64_t vector_address) const;
  /// Lets all stores become visible.
  void settle();
  void poison();
  void post_plain_sends(unsigned n, bool signaled, bool reap);
  void write_cqe(ibv_cq* cq, std::uint32_t slot, const std::string& hex);
  void run_setup_step(const std::string& step);

  /// Compares rings, records and UAR with "written" of the vector.
  void check_written(const Json& written);
  void check_region(const std::byte* base, std::size_t size, const Json& blocks, const std::string& what);
};

/// The list of WRs of a vector as a chain; owns everything.
struct SendChain {
  SendChain(Bench& b, const Json& list);
  std::vector<ibv_send_wr> wrs;
  std::vector<std::vector<ibv_sge>> sges;
  std::vector<ibv_mw> mws;
  ibv_send_wr* first() { return wrs.empty() ? nullptr : wrs.data(); }
  int index_of(const ibv_send_wr* w) const { return static_cast<int>(w - wrs.data()); }
};
struct RecvChain {
  RecvChain(Bench& b, const Json& list, bool translate);
  std::vector<ibv_recv_wr> wrs;
  std::vector<std::vector<ibv_sge>> sges;
  ibv_recv_wr* first() { return wrs.empty() ? nullptr : wrs.data(); }
  int index_of(const ibv_recv_wr* w) const { return static_cast<int>(w - wrs.data()); }
};

std::uint64_t number(const Json& v);
std::vector<std::byte> unhex(const std::string& hex);
std::string hex(const std::byte* p, std::size_t n);

/// Runs `replay` on each case of golden/<group>.json inside one simulation and fails with the cases that differ. Cases of
/// golden/not_built.json must not be built: they are counted, not run.
void replay_group(const std::string& group, const std::function<void(Bench&, const Json&)>& replay);

}  // namespace verbs::test
