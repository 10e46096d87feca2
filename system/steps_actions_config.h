// SPDX-License-Identifier: Apache-2.0
// The actions of steps, one struct each: a verbs call with its arguments and what it has to give, or a wait, store or check.
#pragma once

#include "system/steps_wr_config.h"

namespace sys {

/// Values of memory: to store, to wait for, to check.
struct MemoryValue {
  std::optional<std::uint64_t> u64;
  std::optional<std::uint32_t> u32;
  std::optional<std::uint8_t> byte, pattern;

  std::size_t given() const {
    return std::size_t{u64.has_value()} + u32.has_value() + byte.has_value() + pattern.has_value();
  }
};

/// A piece of an MR's memory and its content.
struct MemoryStep {
  Name mr;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
  MemoryValue value;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("mr", c.mr, "the memory; empty = the only MR", kGiven);
    v("offset", c.offset, "where in it", kGiven);
    v("length", c.length, "bytes, for `byte` and `pattern`", sim::assumed("up to the end of the MR"));
    v("u64", c.value.u64, "a 64-bit number in the order of the host", kGiven);
    v("u32", c.value.u32, "a 32-bit number in the order of the host", kGiven);
    v("byte", c.value.byte, "every byte is this", kGiven);
    v("pattern", c.value.pattern, "byte i of the piece is 7 i + i / 256 + this, modulo 256", kGiven);
  }
  template <class F>
  void check(F&& fail) const {
    if (value.given() != 1) fail("mr", "exactly one of u64, u32, byte and pattern says what the memory holds");
    if (length && (value.u64 || value.u32)) fail("length", "is that of the number");
  }
};

enum class PostUntil : std::uint8_t { once, full };

struct PostSendStep {
  Name qp;
  std::vector<SendWrConfig> wr;
  std::optional<std::uint32_t> bad_wr, cq_mod;
  PostUntil until = PostUntil::once;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("qp", c.qp, "the QP; empty = the only one", kGiven);
    v("wr", c.wr, "the chain of WRs, posted by one call", kGiven);
    v("bad_wr", c.bad_wr, "number in the chain, from 0, of the WR that bad_wr has to name when the call fails", kGiven);
    v("cq_mod", c.cq_mod, "every cq_mod-th WR of the QP is signaled, and no other (perftest -Q)",
      sim::assumed("as send_flags say"), sim::Range{1, 1e9});
    v("until", c.until, "once: one call; full: again and again until the send queue takes no more", kGiven);
  }
  template <class F>
  void check(F&& fail) const {
    if (until == PostUntil::full && bad_wr) fail("bad_wr", "is for one call that fails; `until` full is no failure");
    if (!cq_mod) return;
    for (const SendWrConfig& w : wr)
      for (const ibv_send_flags f : w.send_flags)
        if (f == IBV_SEND_SIGNALED) fail("cq_mod", "says which WRs are signaled; send_flags says so too");
  }
};

struct PostRecvStep {
  Name qp, srq;
  std::vector<RecvWrConfig> wr;
  std::optional<std::uint32_t> bad_wr;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("qp", c.qp, "the QP; empty = the only one", kGiven);
    v("srq", c.srq, "post to this shared receive queue instead", kGiven);
    v("wr", c.wr, "the chain of WRs, posted by one call", kGiven);
    v("bad_wr", c.bad_wr, "number in the chain, from 0, of the WR that bad_wr has to name when the call fails", kGiven);
  }
  template <class F>
  void check(F&& fail) const {
    if (!qp.empty() && !srq.empty()) fail("srq", "a receive goes to a QP or to an SRQ, not to both");
  }
};

enum class PollUntil : std::uint8_t { count, once, empty };

struct PollStep {
  Name cq;
  std::uint32_t count = 1, batch = 16;
  PollUntil until = PollUntil::count;
  sim::Picos timeout{0}, pause{0};
  std::vector<WcConfig> wc;
  std::optional<ibv_wc_status> status;
  bool any_status = false;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("cq", c.cq, "the CQ; empty = the only one", kGiven);
    v("until", c.until, "count: until `count` completions have come; once: one call; empty: until a call returns none",
      kGiven);
    v("count", c.count, "completions to wait for", sim::assumed("one, or as many as `wc` lists"), sim::Range{1, 1e9});
    v("batch", c.batch, "num_entries of one ibv_poll_cq, at most", sim::assumed("as perftest"), sim::Range{1, 65536});
    v("timeout", c.timeout, "give up after this time with ETIMEDOUT; 0 s = never", kGiven, sim::Range{0, 1e18});
    v("pause", c.pause, "time between two polls: a slow consumer", sim::assumed("a spinning loop"),
      sim::Range{0, 1e18});
    v("wc", c.wc, "what the completions have to be, in this order", kGiven);
    v("status", c.status, "status of every completion", sim::assumed("SUCCESS unless `wc` is given"));
    v("any_status", c.any_status, "accept whatever comes", kGiven);
  }
  template <class F>
  void check(F&& fail) const {
    if (!wc.empty() && status) fail("status", "`wc` says the status of each completion already");
    if (any_status && (status || !wc.empty())) fail("any_status", "contradicts `status` and `wc`");
    if (timeout.n != 0 && until != PollUntil::count) fail("timeout", "is for \"until\": \"count\"");
    if (until == PollUntil::count && !wc.empty() && count != 1 && count != wc.size())
      fail("count", "`wc` lists " + std::to_string(wc.size()) + " completions");
  }
};

struct ArmStep {
  Name cq;
  bool solicited_only = false;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("cq", c.cq, "the CQ; empty = the only one", kGiven);
    v("solicited_only", c.solicited_only, "only solicited completions and errors", kGiven);
  }
};

struct GetEventStep {
  Name channel, cq;
  sim::Picos timeout{0};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("channel", c.channel, "completion channel; empty = the only one", kGiven);
    v("cq", c.cq, "CQ whose event it has to be", sim::assumed("any"));
    v("timeout", c.timeout, "give up after this time with ETIMEDOUT; 0 s = block for ever", kGiven,
      sim::Range{0, 1e18});
  }
};

/// How a program waits for several files at once.
enum class WaitBy : std::uint8_t { poll, epoll, epoll_edge };

/// A file to wait for, and whether it has to be ready.
struct WaitFile {
  std::optional<Name> channel;
  bool async_events = false;
  std::optional<bool> ready;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("channel", c.channel, "a completion channel", kGiven);
    v("async_events", c.async_events, "the file of asynchronous events", kGiven);
    v("ready", c.ready, "whether it has to be ready when the wait ends", sim::assumed("either way"));
  }
  template <class F>
  void check(F&& fail) const {
    if (channel.has_value() == async_events) fail("channel", "wait for a channel or for asynchronous events");
  }
};

struct WaitEventsStep {
  std::vector<WaitFile> files;
  WaitBy by = WaitBy::poll;
  sim::Picos timeout{0};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("files", c.files, "what to wait for", sim::required());
    v("by", c.by, "poll(2), or epoll(7): level triggered, or edge triggered", sim::assumed("poll"));
    v("timeout", c.timeout, "give up after this time with ETIMEDOUT; 0 s = never", kGiven, sim::Range{0, 1e18});
  }
  template <class F>
  void check(F&& fail) const {
    if (files.empty()) fail("files", "nothing to wait for");
  }
};

/// An address of the host's network device comes or goes, as `ip addr` asks.
struct AddressStep {
  std::string add, remove;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("add", c.add, "IPv4 address", kGiven);
    v("remove", c.remove, "IPv4 address", kGiven);
  }
  template <class F>
  void check(F&& fail) const {
    if (add.empty() == remove.empty()) fail("add", "one address is added or removed");
  }
};

struct AckStep {
  Name cq;
  std::uint32_t count = 1;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("cq", c.cq, "CQ whose events are acknowledged; empty = the only one", kGiven);
    v("count", c.count, "how many", kGiven);
  }
};

struct GetAsyncStep {
  std::optional<ibv_event_type> type;
  Name object;
  sim::Picos timeout{0};
  bool ack = true;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("type", c.type, "what it has to be", sim::assumed("any"));
    v("object", c.object, "QP, CQ or SRQ that it has to be about", sim::assumed("any"));
    v("timeout", c.timeout, "give up after this time with ETIMEDOUT; 0 s = block for ever", kGiven,
      sim::Range{0, 1e18});
    v("ack", c.ack, "acknowledge it", kGiven);
  }
};

struct ModifyQpStep {
  Name qp;
  std::optional<ibv_qp_state> qp_state;
  QpAttrConfig attr;
  bool fill = true;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("qp", c.qp, "the QP; empty = the only one", kGiven);
    v("qp_state", c.qp_state, "new state; absent = the state is not in the mask", kGiven);
    v("attr", c.attr, "attributes", kGiven);
    v("fill", c.fill,
      "add what the new state needs and `attr` lacks, from the declaration of the QP; false: only `attr`", kGiven);
  }
};

struct QueryQpStep {
  Name qp;
  std::optional<ibv_qp_state> qp_state;
  std::optional<bool> sq_draining;
  QpAttrConfig attr;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("qp", c.qp, "the QP; empty = the only one", kGiven);
    v("qp_state", c.qp_state, "state that ibv_query_qp has to report", kGiven);
    v("sq_draining", c.sq_draining, "sq_draining that it has to report", kGiven);
    v("attr", c.attr, "attributes that it has to report", kGiven);
  }
};

struct ConnectStep {
  Name qp;
  ibv_qp_state to = IBV_QPS_RTS;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("qp", c.qp, "the QP; empty = the only one", kGiven);
    v("to", c.to, "last state of RESET, INIT, RTR, RTS", kGiven);
  }
};

struct ResizeCqStep {
  Name cq;
  std::int32_t cqe = 0;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("cq", c.cq, "the CQ; empty = the only one", kGiven);
    v("cqe", c.cqe, "entries asked for", sim::required());
  }
};

/// ibv_modify_srq, and what ibv_query_srq has to report.
struct SrqStep {
  Name srq;
  std::optional<std::uint32_t> max_wr, srq_limit;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("srq", c.srq, "the SRQ; empty = the only one", kGiven);
    v("max_wr", c.max_wr, "WRs it holds", kGiven);
    v("srq_limit", c.srq_limit, "limit below which SRQ_LIMIT_REACHED is raised", kGiven);
  }
};

struct McastStep {
  Name qp;
  std::string gid;
  std::uint32_t lid = 0;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("qp", c.qp, "the QP; empty = the only one", kGiven);
    v("gid", c.gid, "multicast GID as an IPv6 address", sim::required());
    v("lid", c.lid, "multicast LID", kGiven, sim::Range{0, 65535});
  }
};

struct BindMwStep : BindConfig {
  Name qp;
  std::optional<std::uint64_t> wr_id;
  bool signaled = true;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    BindConfig::fields(c, v);
    v("qp", c.qp, "the QP; empty = the only one", kGiven);
    v("wr_id", c.wr_id, "comes back in the work completion", kGiven);
    v("signaled", c.signaled, "gives a completion", kGiven);
  }
};

struct WaitStep {
  std::optional<MemoryStep> memory;
  Name label;
  std::uint64_t times = 1;
  sim::Picos timeout{0}, interval{4'000};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("memory", c.memory, "until memory holds this, by polling it", kGiven);
    v("label", c.label, "until a program has passed a step \"label\", as \"program.label\"", kGiven);
    v("times", c.times, "that often", kGiven);
    v("timeout", c.timeout, "give up after this time with ETIMEDOUT; 0 s = never", kGiven, sim::Range{0, 1e18});
    v("interval", c.interval, "one turn of the loop that polls memory", sim::assumed("load, compare, branch"),
      sim::Range{1, 1e15});
  }
  template <class F>
  void check(F&& fail) const {
    if (memory.has_value() == !label.empty()) fail("memory", "wait for memory or for a label");
  }
};

/// An adapter goes.
struct RemoveDeviceStep {
  std::string host;
  bool surprise = false;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("host", c.host, "whose adapter; empty = that of the program's host", kGiven);
    v("surprise", c.surprise,
      "it is pulled out of its slot; otherwise its driver is unbound, and takes it down by commands", kGiven);
  }
};

struct CqAssert {
  Name cq;
  std::int32_t cqe = 0;
  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("cq", c.cq, "the CQ; empty = the only one", kGiven);
    v("cqe", c.cqe, "entries that it has", sim::required());
  }
};

struct CapsAssert {
  Name qp;
  std::optional<std::uint32_t> max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("qp", c.qp, "the QP; empty = the only one", kGiven);
    v("max_send_wr", c.max_send_wr, "granted send WRs", kGiven);
    v("max_recv_wr", c.max_recv_wr, "granted receive WRs", kGiven);
    v("max_send_sge", c.max_send_sge, "granted SGEs per send WR", kGiven);
    v("max_recv_sge", c.max_recv_sge, "granted SGEs per receive WR", kGiven);
    v("max_inline_data", c.max_inline_data, "granted inline bytes", kGiven);
  }
};

struct AssertStep {
  std::optional<MemoryStep> memory;
  std::optional<CqAssert> cq;
  std::optional<CapsAssert> caps;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("memory", c.memory, "memory holds this", kGiven);
    v("cq", c.cq, "granted size of a CQ", kGiven);
    v("caps", c.caps, "granted capabilities of a QP", kGiven);
  }
  template <class F>
  void check(F&& fail) const {
    if (!memory && !cq && !caps) fail("memory", "asserts nothing: memory, cq or caps");
  }
};

}  // namespace sys

template <>
struct sim::EnumNames<sys::WaitBy> {
  static constexpr std::array<std::pair<sys::WaitBy, std::string_view>, 3> values{
      {{sys::WaitBy::poll, "poll"}, {sys::WaitBy::epoll, "epoll"}, {sys::WaitBy::epoll_edge, "epoll_edge"}}};
};
template <>
struct sim::EnumNames<sys::PostUntil> {
  static constexpr std::array<std::pair<sys::PostUntil, std::string_view>, 2> values{
      {{sys::PostUntil::once, "once"}, {sys::PostUntil::full, "full"}}};
};
template <>
struct sim::EnumNames<sys::PollUntil> {
  static constexpr std::array<std::pair<sys::PollUntil, std::string_view>, 3> values{
      {{sys::PollUntil::count, "count"}, {sys::PollUntil::once, "once"}, {sys::PollUntil::empty, "empty"}}};
};
