// SPDX-License-Identifier: Apache-2.0
// A program as a list of steps: the exact sequence of verbs calls, waits and checks of one thread. docs/scenario.md is the
// reference for people.
#pragma once

#include <map>

#include "system/plugin_config.h"
#include "system/steps_actions_config.h"

namespace sys {

struct StepConfig;

struct LoopStep {
  std::optional<std::uint64_t> count, until_polled;
  std::vector<StepConfig> steps;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("count", c.count, "how often; with `until_polled` how often at most", kGiven, sim::Range{0, 1e9});
    v("until_polled", c.until_polled,
      "looked at before each turn: ends the loop when the program has polled this many completions in all", kGiven);
    v("steps", c.steps, "what is repeated", sim::required());
  }
  template <class F>
  void check(F&& fail) const {
    if (!count && !until_polled) fail("", "a loop needs `count`, `until_polled` or both");
  }
};

/// One step: exactly one action, and what it has to return.
struct StepConfig {
  std::optional<PostSendStep> post_send;
  std::optional<PostRecvStep> post_recv;
  std::optional<PollStep> poll;
  std::optional<ArmStep> arm;
  std::optional<GetEventStep> get_event;
  std::optional<WaitEventsStep> wait_events;
  std::optional<AckStep> ack;
  std::optional<GetAsyncStep> get_async_event;
  std::optional<Name> ack_async_events;
  std::optional<ModifyQpStep> modify_qp;
  std::optional<QueryQpStep> query_qp;
  std::optional<ConnectStep> connect;
  std::optional<ResizeCqStep> resize_cq;
  std::optional<SrqStep> modify_srq, query_srq;
  std::optional<McastStep> attach_mcast, detach_mcast;
  std::optional<BindMwStep> bind_mw;
  std::optional<AddressStep> address;
  std::optional<Name> create, destroy, meet, label, mark;
  std::optional<sim::Picos> sleep, compute;
  std::optional<WaitStep> wait;
  std::optional<MemoryStep> store;
  std::optional<cpu::Barrier> barrier;
  std::optional<AssertStep> assertion;
  std::optional<LoopStep> loop;
  std::optional<bool> exit;
  std::optional<Name> kill;
  std::optional<RemoveDeviceStep> remove_device;
  std::uint64_t times = 1;
  Errno expect = Errno::success;
  std::string note;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    actions(c, v);
    v("times", c.times, "the step is done that often", kGiven, sim::Range{1, 1e9});
    v("expect", c.expect, "what the call has to return; anything else fails the run", kGiven);
    v("note", c.note, "for readers", kGiven);
  }
  /// The members that are actions.
  template <class Self, class V>
  static void actions(Self& c, V&& v) {
    v("post_send", c.post_send, "ibv_post_send", kGiven);
    v("post_recv", c.post_recv, "ibv_post_recv or ibv_post_srq_recv", kGiven);
    v("poll", c.poll, "ibv_poll_cq", kGiven);
    v("arm", c.arm, "ibv_req_notify_cq", kGiven);
    v("get_event", c.get_event, "ibv_get_cq_event", kGiven);
    v("wait_events", c.wait_events, "poll or epoll_wait on several files", kGiven);
    v("ack", c.ack, "ibv_ack_cq_events", kGiven);
    v("get_async_event", c.get_async_event, "ibv_get_async_event, in a program with \"async_events\": \"steps\"",
      kGiven);
    v("ack_async_events", c.ack_async_events, "ibv_ack_async_event for every event of this object that was read",
      kGiven);
    v("modify_qp", c.modify_qp, "ibv_modify_qp", kGiven);
    v("query_qp", c.query_qp, "ibv_query_qp, compared with what is given", kGiven);
    v("connect", c.connect, "ibv_modify_qp from RESET up to a state", kGiven);
    v("resize_cq", c.resize_cq, "ibv_resize_cq", kGiven);
    v("modify_srq", c.modify_srq, "ibv_modify_srq", kGiven);
    v("query_srq", c.query_srq, "ibv_query_srq, compared with what is given", kGiven);
    v("attach_mcast", c.attach_mcast, "ibv_attach_mcast", kGiven);
    v("detach_mcast", c.detach_mcast, "ibv_detach_mcast", kGiven);
    v("bind_mw", c.bind_mw, "ibv_bind_mw, for windows of type 1", kGiven);
    v("address", c.address, "add or remove an address of the host's network device", kGiven);
    v("create", c.create, "create the declared object of this name", kGiven);
    v("destroy", c.destroy, "destroy the object of this name", kGiven);
    v("sleep", c.sleep, "sleep", kGiven, sim::Range{0, 1e18});
    v("compute", c.compute, "keep the core busy", kGiven, sim::Range{0, 1e18});
    v("meet", c.meet, "wait until every program that has a step with this tag is at it", kGiven);
    v("label", c.label, "says to those that wait for it that this step has been reached", kGiven);
    v("mark", c.mark, "writes the time into the result under this name", kGiven);
    v("wait", c.wait, "wait for memory or for another program", kGiven);
    v("store", c.store, "store to memory", kGiven);
    v("barrier", c.barrier, "a barrier of the drivers' code; the core's architecture decides on the instruction",
      kGiven);
    v("assert", c.assertion, "check memory or what was granted", kGiven);
    v("loop", c.loop, "repeat steps", kGiven);
    v("exit", c.exit, "end the process without destroying anything", kGiven);
    v("kill", c.kill, "SIGKILL for the process of this program, wherever its threads are", kGiven);
    v("remove_device", c.remove_device, "take an adapter away under the programs that use it", kGiven);
  }
  template <class F>
  void check(F&& fail) const {
    std::size_t n = 0;
    actions(*this, [&n](const char*, const auto& action, const char*, sim::Provenance, sim::Range = {}) {
      n += action.has_value();
    });
    if (n != 1)
      fail("", n == 0 ? "a step has one action (post_send, poll, …); this one has none"
                      : "a step has one action; this one has several");
    if (exit && !*exit) fail("exit", "is true or left out");
  }
  /// Name of its action.
  const char* action() const {
    const char* found = "";
    actions(*this, [&found](const char* name, const auto& action, const char*, sim::Provenance, sim::Range = {}) {
      if (action.has_value()) found = name;
    });
    return found;
  }
};

enum class AsyncEvents : std::uint8_t { watch, steps };
enum class AtEnd : std::uint8_t { destroy, exit };

struct ProgramConfig {
  std::string host;
  Name thread_of;
  std::uint32_t core = 0;
  AsyncEvents async_events = AsyncEvents::watch;
  AtEnd at_end = AtEnd::destroy;
  std::map<std::string, PdConfig> pd;
  std::map<std::string, MrConfig> mr;
  std::map<std::string, ChannelConfig> channel;
  std::map<std::string, CqConfig> cq;
  std::map<std::string, SrqConfig> srq;
  std::map<std::string, QpConfig> qp;
  std::map<std::string, AhConfig> ah;
  std::map<std::string, MwConfig> mw;
  std::vector<StepConfig> steps;
  std::optional<PluginConfig> plugin;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("host", c.host, "host on which it runs; empty = the first", kGiven);
    v("thread_of", c.thread_of, "program whose process this one is a further thread of; empty = a process of its own",
      kGiven);
    v("core", c.core, "core that it runs on, counted from the one that it would get by itself",
      sim::assumed("programs of a host take its cores in turn"));
    v("async_events", c.async_events,
      "watch: a second thread reads and acknowledges them for the result; steps: the steps do, or nobody", kGiven);
    v("at_end", c.at_end, "after the last step: destroy every object in order, or just exit", kGiven);
    v("pd", c.pd, "protection domains; without any there is one, \"pd\"", kGiven);
    v("mr", c.mr, "memory regions", kGiven);
    v("channel", c.channel, "completion channels", kGiven);
    v("cq", c.cq, "completion queues", kGiven);
    v("srq", c.srq, "shared receive queues", kGiven);
    v("qp", c.qp, "queue pairs", kGiven);
    v("ah", c.ah, "address handles", kGiven);
    v("mw", c.mw, "memory windows", kGiven);
    v("steps", c.steps, "what it does", kGiven);
    v("plugin", c.plugin, "what it does, as code: instead of objects and steps", kGiven);
  }
};

}  // namespace sys

template <>
struct sim::EnumNames<sys::AsyncEvents> {
  static constexpr std::array<std::pair<sys::AsyncEvents, std::string_view>, 2> values{
      {{sys::AsyncEvents::watch, "watch"}, {sys::AsyncEvents::steps, "steps"}}};
};
template <>
struct sim::EnumNames<sys::AtEnd> {
  static constexpr std::array<std::pair<sys::AtEnd, std::string_view>, 2> values{
      {{sys::AtEnd::destroy, "destroy"}, {sys::AtEnd::exit, "exit"}}};
};
