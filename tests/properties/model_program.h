// SPDX-License-Identifier: Apache-2.0
// Random verbs calls, legal and illegal, each compared with the reference model: the errno, what was granted, the state that a
// query tells, completions, events, use counts.
#pragma once

#include <infiniband/verbs.h>

#include <deque>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "sim/rng.h"
#include "system/host.h"
#include "tests/properties/verbs_model.h"

namespace sys::test {

class ModelProgram {
 public:
  ModelProgram(Process& process, std::uint64_t seed, std::size_t steps, std::string& failure)
      : process_(process), steps_(steps), failure_(failure), rng_(seed, "verbs calls") {}
  void run();
  bool ended() const { return ended_; }

 private:
  // A real object beside its model.
  struct Pd {
    ibv_pd* real;
    ModelPd model;
  };
  struct Mr {
    ibv_mr* real;
    ModelPd* pd;
    std::uint64_t iova;
  };
  struct Channel {
    ibv_comp_channel* real;
    ModelChannel model;
  };
  struct Cq {
    ibv_cq* real;
    ModelCq model;
  };
  struct Qp {
    ibv_qp* real;
    ModelQp model;
    std::uint64_t next_send = 0, next_recv = 0;
  };
  static constexpr std::uint64_t kReceive = 1ULL << 63;  ///< marks the wr_id of a receive

  void open();
  void step();
  void alloc_pd();
  void dealloc_pd();
  void reg_mr();
  void dereg_mr();
  void create_channel();
  void destroy_channel();
  void create_cq();
  void destroy_cq();
  void create_qp();
  void destroy_qp();
  void modify_qp();
  void query_qp(Qp& qp);
  void post_send();
  void post_recv();
  void poll();
  void arm();
  void read_event();
  void acknowledge(Cq& cq);
  void close();

  ibv_qp_attr good_attributes() const;
  void spoil(ibv_qp_attr& attr);
  int room_in(const ModelCq& cq) const;

  template <class T>
  T* any(std::list<T>& from) {
    if (from.empty()) return nullptr;
    auto it = from.begin();
    std::advance(it, rng_.below(static_cast<std::uint32_t>(from.size())));
    return &*it;
  }
  template <class T>
  void remove(std::list<T>& from, const T* x) {
    from.remove_if([&](const T& e) { return &e == x; });
  }
  /// Says what is done now; the last few are part of a failure.
  void note(const std::string& what);
  void expect(const std::string& what, std::int64_t got, std::int64_t wanted);

  Process& process_;
  const std::size_t steps_;
  std::string& failure_;
  sim::Rng rng_;
  std::deque<std::string> history_;
  std::size_t step_ = 0;
  ibv_context* context_ = nullptr;
  VerbsModel model_{{}};
  std::uint32_t comp_vectors_ = 0;
  std::byte* memory_ = nullptr;
  ibv_gid peer_{};
  std::list<Pd> pds_;
  std::list<Mr> mrs_;
  std::list<Channel> channels_;
  std::list<Cq> cqs_;
  std::list<Qp> qps_;
  bool ended_ = false;
};

}  // namespace sys::test
