// SPDX-License-Identifier: Apache-2.0
// Reference model of the verbs objects of one process: use counts, QP states and attribute masks, queue occupancy, pending
// completions and events. Written from the rules (S-OBJ, S-QP, S-PS, S-PR, S-CE), not from the code under test. Its QPs are
// connected to a peer that never answers.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <vector>

namespace sys::test {

struct ModelPd {
  unsigned uses = 0;
};
struct ModelCq;
struct ModelChannel {
  unsigned cqs = 0;
  struct Event {
    ModelCq* cq;
    std::uint64_t epoch;
  };
  std::deque<Event> events;  ///< unread
};

struct ModelWc {
  std::uint64_t wr_id;
  ibv_wc_status status;
  std::uint32_t frees = 1;  ///< slots: its own and those of unsignaled requests before it (S-PS-40)
};

struct ModelQp;
struct ModelCq {
  std::uint32_t cqe = 0;
  unsigned uses = 0;
  ModelChannel* channel = nullptr;
  bool armed = false;
  bool unread = false;   ///< an event of it waits in the channel: arming again has no effect (S-CE-7)
  unsigned unacked = 0;  ///< events read and not acknowledged
  std::uint32_t queued = 0;
};

/// What is known of the attributes that modify_qp has set.
struct ModelAttributes {
  ibv_mtu path_mtu{};
  std::uint32_t dest_qp_num = 0, rq_psn = 0, sq_psn = 0, access = 0;
  std::uint8_t max_rd_atomic = 0, max_dest_rd_atomic = 0, min_rnr_timer = 0, timeout = 0, retry_cnt = 0, rnr_retry = 0;
  std::uint8_t port = 0;
};

struct ModelWr {
  std::uint64_t wr_id;
  std::optional<ibv_wc_status> fails;  ///< status that its execution ends with
  bool signaled = false;
};

struct ModelQp {
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_state state = IBV_QPS_RESET;
  ModelPd* pd = nullptr;
  ModelCq *send_cq = nullptr, *recv_cq = nullptr;
  ibv_qp_cap asked{}, granted{};
  ModelAttributes attributes;
  bool send_gate = false, recv_gate = false;   ///< S-QP-41
  bool draining = false;                       ///< SQD: a started request will never complete
  std::uint32_t silent = 0;                    ///< unsignaled requests that have completed since the last completion
  std::uint32_t send_used = 0, recv_used = 0;  ///< slots that no polled completion has given back
  std::deque<ModelWr> sends, receives;         ///< not complete
  std::deque<ModelWc> send_wcs, recv_wcs;      ///< complete and not polled
};

/// A send request as far as the model cares.
struct ModelSend {
  int opcode = IBV_WR_SEND;
  int sges = 1;
  std::uint32_t bytes = 0;
  bool in_line = false;
  bool bad_key = false;
  bool signaled = false;
};

class VerbsModel {
 public:
  struct Limits {
    std::uint32_t cqe, comp_vectors, qp_wr, send_wqebbs, send_desc, recv_desc, ports, pkeys, rd_atomic, max_mtu;
  };
  explicit VerbsModel(const Limits& limits) : limits_(limits) {}

  // Each returns the errno that the call has to give, and does what the call does when that is 0.
  int dealloc_pd(ModelPd& pd) const { return pd.uses > 0 ? EBUSY : 0; }
  int reg_mr(std::uint64_t address, std::uint64_t length, std::uint64_t iova, unsigned access, bool mapped) const;
  int create_cq(std::int64_t cqe, std::uint32_t vector, ModelCq& cq) const;
  int destroy_cq(ModelCq& cq);
  int destroy_channel(const ModelChannel& c) const { return c.cqs > 0 ? EBUSY : 0; }
  int create_qp(ModelQp& qp) const;
  void destroy_qp(ModelQp& qp);
  int modify_qp(ModelQp& qp, const ibv_qp_attr& attr, int mask);
  /// Requests of a chain that are accepted before the first failure, and its errno (0 if none).
  std::pair<std::size_t, int> post_send(ModelQp& qp, const std::vector<ModelSend>& chain, std::uint64_t first_id);
  std::pair<std::size_t, int> post_recv(ModelQp& qp, const std::vector<int>& sges, std::uint64_t first_id);
  void arm(ModelCq& cq);
  /// An event of `cq` was read; false if none can be next. CQs that one call completes work on may come in any order.
  bool read_event(ModelChannel& c, ModelCq& cq);
  /// What comes now is the consequence of another call than before.
  void next_call() { ++epoch_; }
  /// A completion was polled; false if it is not the next one of its queue.
  bool polled(ModelQp& qp, bool receive, std::uint64_t wr_id, ibv_wc_status status);

 private:
  int check_mask(const ModelQp& qp, const ibv_qp_attr& attr, int mask, ibv_qp_state& to) const;
  int check_values(const ModelQp& qp, const ibv_qp_attr& attr, int mask, ibv_qp_state to) const;
  void complete(ModelQp& qp, bool receive, const ModelWr& wr, ibv_wc_status status);
  void execute(ModelQp& qp);
  void flush(ModelQp& qp);
  void flush_sends(ModelQp& qp);
  void forget(ModelQp& qp);
  void notify(ModelCq& cq);
  Limits limits_;
  std::uint64_t epoch_ = 0;
};

/// Attributes that a transition requires and those that it may have besides, without IBV_QP_STATE; nothing if it does not
/// exist (S-QP-3, S-QP-12).
struct ModelMasks {
  int required, optional;
};
std::optional<ModelMasks> model_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to);

}  // namespace sys::test
