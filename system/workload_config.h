// SPDX-License-Identifier: Apache-2.0
// A workload in perftest's vocabulary.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kernel/kernel_verbs_config.h"
#include "sim/config.h"
#include "sim/units.h"

namespace sys {

enum class Op : std::uint8_t { send_lat, send_bw, write_lat, write_bw, read_lat, read_bw };
enum class CompletionMode : std::uint8_t { poll, event };
/// Who uses the device.
enum class ConsumerKind : std::uint8_t { user, kernel };

struct WorkloadConfig {
  std::string name;
  Op op = Op::send_lat;
  std::string client, server;
  sim::Bytes size{2};
  std::uint64_t iters = 1000;
  std::uint32_t tx_depth = 0, rx_depth = 512, cq_depth = 0, cq_mod = 1, inline_size = 0, post_list = 1, qps = 1;
  std::uint32_t mtu = 4096;
  CompletionMode completion = CompletionMode::poll;
  std::optional<CompletionMode> client_completion, server_completion;
  std::uint64_t rate_limit = 0;
  std::uint32_t comp_vector = 0;
  ConsumerKind consumer = ConsumerKind::user;
  std::optional<ConsumerKind> client_consumer, server_consumer;
  kernel::PollContext poll_context = kernel::PollContext::softirq;
  bool dim = false;
  std::uint32_t gid_index = 3;
  std::uint32_t qp_timeout = 14, retry_cnt = 7, rnr_retry = 7, min_rnr_timer = 12, max_rd_atomic = 16;
  bool verify = true;
  sim::Picos memory_poll{4'000};
  sim::Picos loop{5'000};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto perftest = sim::spec("perftest default");
    v("name", c.name, "name in results; empty = the op", sim::assumed("the op"));
    v("op", c.op, "send, write or read; lat = ping-pong (read: one at a time), bw = stream from client to server",
      sim::required());
    v("client", c.client, "host that starts; empty = the first", sim::assumed("the first host"));
    v("server", c.server, "the other host; empty = the one that is not the client", sim::assumed("the second host"));
    v("size", c.size, "message size (-s)", perftest, sim::Range{0, 1 << 30});
    v("iters", c.iters, "messages per QP and direction (-n)", perftest, sim::Range{1, 1e12});
    v("tx_depth", c.tx_depth, "send WRs outstanding per QP (-t); 0 = 128 for bw, 1 for lat", perftest,
      sim::Range{0, 32768});
    v("rx_depth", c.rx_depth, "receive WRs posted per QP (-r)", perftest, sim::Range{1, 32768});
    v("cq_depth", c.cq_depth, "entries asked for when creating each CQ; 0 = as many as can be outstanding", perftest,
      sim::Range{0, 1 << 22});
    v("cq_mod", c.cq_mod, "every cq_mod-th send WR is signaled (-Q)",
      sim::assumed("every one; perftest uses 100 for bw"), sim::Range{1, 32768});
    v("inline_size", c.inline_size, "messages up to this size are sent inline (-I)",
      sim::assumed("perftest: 236 for send_lat, 220 for write_lat, 0 for bw"), sim::Range{0, 912});
    v("post_list", c.post_list, "WRs per ibv_post_send call (-l)", perftest, sim::Range{1, 1024});
    v("qps", c.qps, "queue pairs (-q), bw only", perftest, sim::Range{1, 16384});
    v("mtu", c.mtu, "path MTU in bytes (-m): 256, 512, 1024, 2048 or 4096", sim::assumed("the largest"),
      sim::Range{256, 4096});
    v("completion", c.completion, "poll, or event: sleep on the completion channel (-e)", perftest);
    v("client_completion", c.client_completion, "the same for the client alone", sim::assumed("as completion"));
    v("server_completion", c.server_completion, "the same for the server alone", sim::assumed("as completion"));
    v("rate_limit", c.rate_limit,
      "messages per second that the client posts at most (--rate_limit with --rate_units p); 0 = as fast as it goes. "
      "It "
      "waits for the next one in its own manner: polling on its core, or asleep",
      perftest, sim::Range{0, 1e12});
    v("comp_vector", c.comp_vector, "completion vector of its CQs", sim::assumed("perftest uses vector 0"),
      sim::Range{0, 1023});
    v("consumer", c.consumer, "a program, through uverbs, or a kernel module, through the in-kernel verbs", perftest);
    v("client_consumer", c.client_consumer, "the same for the client alone", sim::assumed("as consumer"));
    v("server_consumer", c.server_consumer, "the same for the server alone", sim::assumed("as consumer"));
    v("poll_context", c.poll_context,
      "kernel consumers: their own loop polls the CQ (direct), or the RDMA core does, in the softirq or a work queue",
      sim::spec("Linux ULPs: softirq where the work is short"));
    v("dim", c.dim, "kernel consumers: adaptive moderation of the CQ (rdma_dim)",
      sim::spec("Linux: off unless switched on for the device"));
    v("gid_index", c.gid_index, "GID table index (-x); 3 is RoCE v2 over IPv4",
      sim::assumed("order in which Linux fills the table"), sim::Range{0, 255});
    v("qp_timeout", c.qp_timeout, "local ACK timeout exponent (-u)", perftest, sim::Range{0, 31});
    v("retry_cnt", c.retry_cnt, "transport retries", perftest, sim::Range{0, 7});
    v("rnr_retry", c.rnr_retry, "RNR retries, 7 = for ever", perftest, sim::Range{0, 7});
    v("min_rnr_timer", c.min_rnr_timer, "RNR timer code of the receiver", perftest, sim::Range{0, 31});
    v("max_rd_atomic", c.max_rd_atomic, "outstanding READs (-o)", perftest, sim::Range{1, 128});
    v("verify", c.verify, "compare the received bytes with those sent", sim::assumed("a simulator can afford it"));
    v("memory_poll", c.memory_poll, "one turn of the loop that waits for a byte in memory (write_lat)",
      sim::assumed("load, compare, branch, pause-free"), sim::Range{1, 1e9});
    v("loop", c.loop, "work of the test program between two messages: counters, time stamps, branches",
      sim::assumed("a dozen instructions"), sim::Range{0, 1e12});
  }
  template <class F>
  void check(F&& fail) const {
    if (mtu != 256 && mtu != 512 && mtu != 1024 && mtu != 2048 && mtu != 4096)
      fail("mtu", "must be 256, 512, 1024, 2048 or 4096");
    if (is_lat() && qps != 1) fail("qps", "latency workloads use one QP");
    if (is_lat() && post_list != 1) fail("post_list", "latency workloads post one WR at a time");
    if (op == Op::write_lat && size.n == 0) fail("size", "write_lat polls the last byte of the message: at least 1 B");
    if (post_list > depth()) fail("post_list", "cannot exceed tx_depth (" + std::to_string(depth()) + ")");
    if (cq_mod > depth())
      fail("cq_mod", "with no signaled WR among tx_depth (" + std::to_string(depth()) +
                         ") outstanding ones the program would wait for ever");
    check_kernel_consumers(fail);
    if ((op == Op::read_lat || op == Op::read_bw) && inline_size != 0)
      fail("inline_size", "a READ has nothing to inline");
  }
  /// How a side waits for completions.
  CompletionMode mode(bool of_client) const {
    return (of_client ? client_completion : server_completion).value_or(completion);
  }
  /// Whether that side is a kernel consumer.
  bool in_kernel(bool of_client) const {
    return (of_client ? client_consumer : server_consumer).value_or(consumer) == ConsumerKind::kernel;
  }
  template <class F>
  void check_kernel_consumers(F&& fail) const {
    const bool client_in_kernel = in_kernel(true), server_in_kernel = in_kernel(false);
    if (!client_in_kernel && !server_in_kernel) {
      if (poll_context != kernel::PollContext::softirq)
        fail("poll_context", "is for kernel consumers; a program chooses with completion");
      if (dim) fail("dim", "is for kernel consumers");
      return;
    }
    constexpr const char* kForPrograms = "is for programs; a kernel consumer chooses with poll_context";
    if (client_in_kernel && client_completion) fail("client_completion", kForPrograms);
    if (server_in_kernel && server_completion) fail("server_completion", kForPrograms);
    if (client_in_kernel && server_in_kernel && completion != CompletionMode::poll) fail("completion", kForPrograms);
    if (op == Op::write_lat) fail("op", "write_lat polls memory in a program; a kernel consumer has no such loop");
    if (client_in_kernel && rate_limit != 0) fail("rate_limit", "paces programs; a kernel client posts when it can");
    if (dim && poll_context == kernel::PollContext::direct)
      fail("dim", "moderates events, and a CQ that is polled directly has none");
  }
  bool is_lat() const { return op == Op::send_lat || op == Op::write_lat || op == Op::read_lat; }
  bool is_send() const { return op == Op::send_lat || op == Op::send_bw; }
  bool is_write() const { return op == Op::write_lat || op == Op::write_bw; }
  bool is_read() const { return op == Op::read_lat || op == Op::read_bw; }
  std::uint32_t depth() const { return tx_depth != 0 ? tx_depth : is_lat() ? std::max(1U, cq_mod) : 128U; }
};

}  // namespace sys

template <>
struct sim::EnumNames<sys::Op> {
  static constexpr std::array<std::pair<sys::Op, std::string_view>, 6> values{{{sys::Op::send_lat, "send_lat"},
                                                                               {sys::Op::send_bw, "send_bw"},
                                                                               {sys::Op::write_lat, "write_lat"},
                                                                               {sys::Op::write_bw, "write_bw"},
                                                                               {sys::Op::read_lat, "read_lat"},
                                                                               {sys::Op::read_bw, "read_bw"}}};
};
template <>
struct sim::EnumNames<sys::CompletionMode> {
  static constexpr std::array<std::pair<sys::CompletionMode, std::string_view>, 2> values{
      {{sys::CompletionMode::poll, "poll"}, {sys::CompletionMode::event, "event"}}};
};
template <>
struct sim::EnumNames<sys::ConsumerKind> {
  static constexpr std::array<std::pair<sys::ConsumerKind, std::string_view>, 2> values{
      {{sys::ConsumerKind::user, "user"}, {sys::ConsumerKind::kernel, "kernel"}}};
};
