// SPDX-License-Identifier: Apache-2.0
// Rules that the trace of every run obeys, over runs of many kinds. A rule that is broken prints its records.
#include <gtest/gtest.h>

#include <set>

#include "tests/system/recorder.h"
#include "tests/system/run_workload.h"
#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using sim::Picos;
using sim::trace::Category;
using sim::trace::Instant;
using sim::trace::Level;
using sim::trace::Span;
using sim::trace::TrackKind;

constexpr std::uint8_t kSendOnly = 4, kReadResponseMiddle = 14, kAck = 17, kCompareSwap = 19;

bool is(const auto& record, std::string_view point) { return record.point->name == point; }
bool of_hardware(const Span& s) {
  const Category c = s.point->category;
  return c == Category::pcie || c == Category::iommu || c == Category::fabric || c == Category::hca;
}

// Spans of an exclusive lane follow each other or lie one in the other; every span waits, begins and ends in this order.
void lanes_are_exclusive(const Records& r) {
  std::map<std::uint32_t, std::vector<const Span*>> lanes;
  for (const Span& s : r.spans) {
    EXPECT_TRUE(s.enqueued <= s.start && s.start <= s.end) << r.text(s);
    if (r.tracks.at(s.track).kind == TrackKind::exclusive) lanes[s.track].push_back(&s);
  }
  for (auto& [track, spans] : lanes) {
    std::ranges::stable_sort(spans, {}, [](const Span* s) { return std::pair(s->start.n, -s->end.n); });
    std::vector<const Span*> open;  // each inside the one before it
    for (const Span* s : spans) {
      while (!open.empty() && open.back()->end <= s->start) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(s->end, open.back()->end) << r.text(*open.back()) << "\n" << r.text(*s);
      }
      open.push_back(s);
    }
  }
}

// A cause is recorded, has begun before what it causes, and has the smaller number. In hardware every span of a message has
// one, unless nothing of the message is earlier. A cause that is missing was under way when the run ended.
void spans_have_causes(const Records& r, bool drained) {
  std::map<sim::MsgId, std::int64_t> first;
  for (const Span& s : r.spans)
    if (s.msg != 0) first.try_emplace(s.msg, s.enqueued.n).first->second = std::min(first[s.msg], s.enqueued.n);
  for (const Span& s : r.spans) {
    if (!of_hardware(s)) continue;
    if (s.parent == 0) {
      EXPECT_TRUE(s.msg == 0 || s.enqueued.n <= first[s.msg]) << "no cause: " << r.text(s);
      continue;
    }
    EXPECT_LT(s.parent, s.id) << r.text(s);
    const Span* up = r.find(s.parent);
    EXPECT_TRUE(up != nullptr || !drained) << "lost cause: " << r.text(s);
    if (up != nullptr) {
      EXPECT_LE(up->enqueued, s.start) << r.text(*up) << "\n" << r.text(s);
    }
  }
  for (const Instant& i : r.instants) {
    const Span* up = i.parent != 0 ? r.find(i.parent) : nullptr;
    if (up != nullptr) {
      EXPECT_LE(up->enqueued, i.t) << r.text(*up) << "\n" << r.text(i);
    }
  }
}

// A completion leads back to the store that posted the message's work.
void completions_lead_to_the_post(const Records& r) {
  for (const Span& s : r.spans) {
    if (!is(s, "hca.cqe") || s.msg == 0) continue;
    const Category root = r.chain(s).front()->point->category;
    EXPECT_TRUE(root == Category::cpu || root == Category::verbs || root == Category::kernel)
        << r.text(*r.chain(s).front()) << "\n"
        << r.text(s);
  }
}

// Each flight on a cable is one frame that leaves, and arrives when the flight ends or is lost.
void frames_match_flights(const Records& r, bool drained) {
  std::map<std::pair<std::uint32_t, std::int64_t>, const Span*> flights;  // by cable and first bit
  std::map<std::uint64_t, const Span*> of_frame;
  std::set<std::uint64_t> arrived;
  std::size_t lost = 0;
  for (const Span& s : r.spans)
    if (is(s, "fabric.wire")) {
      EXPECT_TRUE(flights.emplace(std::pair(s.track, s.start.n), &s).second) << r.text(s);
    }
  for (const Instant& i : r.instants) lost += is(i, "fabric.drop");
  for (const RecordedFrame& f : r.frames) {
    if (!f.transmit) {
      EXPECT_TRUE(arrived.insert(f.frame).second) << "frame " << f.frame << " arrives twice";
      ASSERT_TRUE(of_frame.contains(f.frame)) << "frame " << f.frame << " has not been sent";
      EXPECT_EQ(of_frame[f.frame]->end, f.t) << r.text(*of_frame[f.frame]);
      continue;
    }
    const auto flight = flights.find({f.track, f.t.n});
    ASSERT_NE(flight, flights.end()) << "frame " << f.frame << " at " << f.t.n << " without a flight";
    EXPECT_EQ(flight->second->args[3], f.length) << r.text(*flight->second);
    EXPECT_TRUE(of_frame.emplace(f.frame, flight->second).second) << "frame " << f.frame << " is sent twice";
  }
  EXPECT_EQ(of_frame.size(), flights.size());
  if (drained) {
    EXPECT_EQ(arrived.size() + lost, flights.size());
  }
}

// Requests of a QP count up their PSNs; they go back only where a retransmission is marked. The data of a READ take PSNs too.
void psns_are_contiguous(const Records& r) {
  struct Stream {
    bool begun = false, marked = false, read = false;
    std::uint32_t next = 0;  // behind the highest so far
    std::uint32_t last = 0;
  };
  std::map<std::pair<std::int32_t, std::uint64_t>, Stream> streams;
  std::vector<std::tuple<Picos, int, std::pair<std::int32_t, std::uint64_t>, const Span*>> steps;
  for (const Instant& i : r.instants)
    if (is(i, "hca.retransmit")) steps.emplace_back(i.t, 0, std::pair(r.tracks.at(i.track).host, i.args[0]), nullptr);
  for (const Span& s : r.spans) {
    const auto key = std::pair(r.tracks.at(s.track).host, s.args[0]);
    if (is(s, "hca.rnr_wait")) steps.emplace_back(s.start, 0, key, nullptr);
    const std::uint64_t operation = is(s, "hca.tx") ? s.args[2] & 0x1F : 0x1F;
    const bool request = operation <= 0x0C || (operation >= 0x13 && operation <= 0x17);
    if (is(s, "hca.tx") && s.args[2] < 0x60 && request) steps.emplace_back(s.end, 1, key, &s);
  }
  std::ranges::stable_sort(steps, {}, [](const auto& x) { return std::pair(std::get<0>(x).n, std::get<1>(x)); });
  for (const auto& [t, kind, key, tx] : steps) {
    Stream& q = streams[key];
    if (tx == nullptr) {
      q.marked = true;
      continue;
    }
    const auto psn = static_cast<std::uint32_t>(tx->args[1]);
    const auto ahead = [](std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>((a - b) << 8) >> 8; };
    if (q.begun && ahead(psn, q.next) < 0) {
      EXPECT_TRUE(q.marked || ahead(psn, q.last) > 0) << "a packet is sent again: " << r.text(*tx);
      if (ahead(psn, q.last) <= 0) q.marked = false;
    } else if (q.begun && !q.read) {
      EXPECT_EQ(psn, q.next) << "a gap before " << r.text(*tx);
    }
    if (!q.begun || ahead(psn, q.next) >= 0) {
      q.next = (psn + 1) & 0xFFFFFF;
      q.read = (tx->args[2] & 0x1F) == 0x0C;
    }
    q.begun = true;
    q.last = psn;
  }
}

// Levels are not negative and change with each record; what is used is given back in the end.
void levels_come_to_rest(const Records& r, bool drained) {
  std::map<std::pair<std::uint32_t, std::string>, std::vector<const Level*>> lanes;
  for (const Level& l : r.levels) {
    EXPECT_GE(l.value, 0) << r.path(l.track) << " " << l.point->name << " at " << l.t.n;
    lanes[{l.track, l.point->name}].push_back(&l);
  }
  const std::set<std::string> ends_empty{"hca.sq_depth", "hca.rd_atomic", "hca.dma_tags", "fabric.queue",
                                         "pcie.waiting"};
  for (const auto& [lane, levels] : lanes) {
    if (drained && ends_empty.contains(lane.second)) {
      EXPECT_EQ(levels.back()->value, 0) << r.path(lane.first);
    }
    for (std::size_t i = 1; i < levels.size(); ++i)
      EXPECT_LE(levels[i - 1]->t, levels[i]->t) << r.path(lane.first) << " " << lane.second;
    if (lane.second != "pcie.credits") continue;
    for (const Level* l : levels) EXPECT_LE(l->value, levels.front()->value) << r.path(lane.first) << " at " << l->t.n;
  }
}

// Interrupts are not more than EQEs, and completion events not more than arms.
void events_are_armed(const Records& r) {
  for (const char* host : {"host0.", "host1."}) {
    const auto completion = [&](const Span& s) {
      return is(s, "hca.eqe") && s.args[1] == 0 && r.path(s.track).starts_with(host);
    };
    EXPECT_LE(std::ranges::count_if(r.spans, completion),
              static_cast<std::ptrdiff_t>(r.count("hca.cq_doorbell", host)));
    EXPECT_LE(r.count("kernel.irq", host), r.count("pcie.msix", host));
    EXPECT_LE(r.count("pcie.msix", host), r.count("hca.eqe", host));
  }
}

void check(const Records& r, bool drained = true) {
  EXPECT_FALSE(r.spans.empty());
  lanes_are_exclusive(r);
  spans_have_causes(r, drained);
  completions_lead_to_the_post(r);
  frames_match_flights(r, drained);
  psns_are_contiguous(r);
  levels_come_to_rest(r, drained);
  events_are_armed(r);
}

/// A pair whose records are kept.
struct Recorded : Pair {
  Recorded() { sinks.push_back(std::make_unique<Recorder>(records)); }
  Records records;
};

/// Names of the spans that lead to the last CQE of a message on that host, from the doorbell on.
std::vector<std::string> way_to_cqe(const Records& r, std::string_view host) {
  std::vector<std::string> names;
  for (const Span& s : r.spans) {
    if (!is(s, "hca.cqe") || s.msg == 0 || !r.path(s.track).starts_with(host)) continue;
    names.clear();
    bool rung = false;
    for (const Span* step : r.chain(s)) {
      rung |= is(*step, "hca.doorbell");
      if (rung) names.emplace_back(step->point->name);
    }
  }
  return names;
}
using Names = std::vector<std::string>;

TEST(TraceInvariants, Send) {
  Recorded p;
  p.run(
      [](End& e) {
        e.meet("posted");
        ASSERT_EQ(e.send(1, 0, 64), 0);
        e.wait(1);
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        e.meet("posted");
        e.wait(1);
      });
  check(p.records);
  const Names out{"hca.doorbell", "hca.wqe", "hca.translate", "hca.dma_read", "hca.tx", "fabric.wire", "hca.rx"};
  Names at_the_receiver = out, at_the_sender = out;
  for (const char* s : {"hca.translate", "hca.cqe"}) at_the_receiver.emplace_back(s);
  for (const char* s : {"hca.translate", "hca.tx", "fabric.wire", "hca.rx", "hca.cqe"}) at_the_sender.emplace_back(s);
  EXPECT_EQ(way_to_cqe(p.records, "host1"), at_the_receiver);
  EXPECT_EQ(way_to_cqe(p.records, "host0"), at_the_sender);
  EXPECT_EQ(p.records.count("hca.cqe"), 2u);
}

TEST(TraceInvariants, WriteReadAndAtomic) {
  Recorded p;
  for (EndOptions& o : p.options)
    o.qp_access = o.mr_access =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  std::vector<Names> ways;
  p.run(
      [&](End& e) {
        ASSERT_EQ(e.write(1, 0, 64, e.peer.va, e.peer.rkey), 0);
        e.wait(1);
        ways.push_back(way_to_cqe(p.records, "host0"));
        ASSERT_EQ(e.read(2, 0, 64, e.peer.va, e.peer.rkey), 0);
        e.wait(1);
        ways.push_back(way_to_cqe(p.records, "host0"));
        ibv_sge sge = e.sge(0, 8);
        ibv_send_wr wr{}, *bad = nullptr;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.wr.atomic = {e.peer.va, 1, 0, e.peer.rkey};
        ASSERT_EQ(ibv_post_send(e.qp, &wr, &bad), 0);
        e.wait(1);
        ways.push_back(way_to_cqe(p.records, "host0"));
        e.meet("done");
      },
      [](End& e) { e.meet("done"); });
  check(p.records);
  ASSERT_EQ(ways.size(), 3u);
  EXPECT_EQ(ways[0], (Names{"hca.doorbell", "hca.wqe", "hca.translate", "hca.dma_read", "hca.tx", "fabric.wire",
                            "hca.rx", "hca.translate", "hca.translate", "hca.tx", "fabric.wire", "hca.rx", "hca.cqe"}));
  EXPECT_EQ(ways[1],
            (Names{"hca.doorbell", "hca.wqe", "hca.tx", "fabric.wire", "hca.rx", "hca.translate", "hca.translate",
                   "hca.dma_read", "hca.tx", "fabric.wire", "hca.rx", "hca.translate", "hca.cqe"}));
  EXPECT_EQ(ways[2],
            (Names{"hca.doorbell", "hca.wqe", "hca.tx", "fabric.wire", "hca.rx", "hca.translate", "hca.translate",
                   "hca.atomic", "hca.tx", "fabric.wire", "hca.rx", "hca.translate", "hca.cqe"}));
}

TEST(TraceInvariants, ManyPacketsAndLossOfEachKind) {
  Recorded p;
  for (EndOptions& o : p.options) {
    o.timeout = 8;
    o.qp_access = o.mr_access =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  }
  p.lose(kSendOnly, std::nullopt, 3);
  p.lose(kAck, std::nullopt, 5);
  p.lose(kReadResponseMiddle, std::nullopt, 2);
  p.lose(kCompareSwap);
  using fabric::ImpairmentType;
  for (const auto type : {ImpairmentType::duplicate, ImpairmentType::delay, ImpairmentType::reorder}) {
    p.lose(kSendOnly, std::nullopt, 6 + static_cast<std::uint32_t>(type));
    p.scenario.fabric.link.impairment.events.back().type = type;
  }
  p.run(
      [](End& e) {
        e.meet("posted");
        for (std::uint64_t i = 0; i < 15; ++i) ASSERT_EQ(e.send(i, 0, 512), 0);
        e.wait(15);
        for (std::uint64_t i = 0; i < 3; ++i) {
          ASSERT_EQ(e.read(i, 0, 5000, e.peer.va, e.peer.rkey), 0);
          ASSERT_EQ(e.write(i, 8192, 3000, e.peer.va, e.peer.rkey), 0);
        }
        e.wait(6);
        ibv_sge sge = e.sge(0, 8);
        ibv_send_wr wr{}, *bad = nullptr;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.wr.atomic = {e.peer.va, 1, 0, e.peer.rkey};
        ASSERT_EQ(ibv_post_send(e.qp, &wr, &bad), 0);
        e.wait(1);
        e.meet("done");
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 15; ++i) ASSERT_EQ(e.receive(i, 0, 512), 0);
        e.meet("posted");
        e.wait(15);
        e.meet("done");
      });
  check(p.records);
  EXPECT_EQ(p.records.count("hca.cqe", "host0"), 22u) << "one for each signaled WR";
  EXPECT_EQ(p.records.count("hca.cqe", "host1"), 15u);
  EXPECT_GT(p.records.count("hca.retransmit"), 0u);
  EXPECT_GT(p.records.count("hca.ack_timeout"), 0u);
  for (const Instant& i : p.records.instants) {
    if (!is(i, "hca.retransmit") && !is(i, "hca.ack_timeout") && !is(i, "hca.nak")) continue;
    EXPECT_NE(i.msg, 0u) << p.records.text(i);
    EXPECT_NE(p.records.find(i.parent), nullptr) << p.records.text(i);
  }
}

TEST(TraceInvariants, ReceiverNotReady) {
  Recorded p;
  p.run(
      [](End& e) {
        ASSERT_EQ(e.send(1, 0, 64), 0);
        e.wait(1);
        e.meet("done");
      },
      [](End& e) {
        e.thread().sleep(20_us);
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        e.wait(1);
        e.meet("done");
      });
  check(p.records);
  EXPECT_GT(p.records.count("hca.rnr_wait"), 0u);
  EXPECT_EQ(p.records.count("hca.rnr_wait"), p.records.count("hca.rnr_nak"));
}

TEST(TraceInvariants, CqOverrun) {
  Recorded p;
  p.options[1].cqe = 15;
  p.options[0].timeout = 8;
  p.options[0].retry = 1;
  for (EndOptions& o : p.options) o.send_wr = o.recv_wr = 64;
  p.run(
      [](End& e) {
        e.meet("posted");
        for (std::uint64_t i = 0; i < 60; ++i) ASSERT_EQ(e.send(i, 0, 8), 0);
        e.wait(60);
        e.meet("done");
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 60; ++i) ASSERT_EQ(e.receive(i, 0, 64), 0);
        e.meet("posted");
        e.meet("done");
      });
  check(p.records);
  EXPECT_EQ(p.records.count("hca.cqe", "host0"), 60u) << "signaled or in error";
  EXPECT_EQ(p.records.count("hca.cqe", "host1"), 16u) << "as many as the CQ holds";
  EXPECT_EQ(p.records.count("hca.cq_overrun"), 1u);
}

TEST(TraceInvariants, SharedReceiveQueue) {
  Recorded p;
  p.run(
      [](End& e) {
        e.meet("posted");
        for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(e.send(i, 0, 2000), 0);
        e.wait(10);
        e.meet("done");
      },
      [](End& e) {
        e.meet("posted");
        e.wait(10);
        e.meet("done");
      },
      [](End& e) {
        ibv_srq_init_attr init{nullptr, {32, 2, 0}};
        ibv_srq* srq = ibv_create_srq(e.pd, &init);
        ASSERT_NE(srq, nullptr);
        ibv_qp_init_attr attr{};
        attr.send_cq = attr.recv_cq = e.cq;
        attr.srq = srq;
        attr.qp_type = IBV_QPT_RC;
        attr.cap = {16, 0, 2, 2, 0};
        e.qp = ibv_create_qp(e.pd, &attr);
        ASSERT_NE(e.qp, nullptr);
        for (std::uint64_t i = 0; i < 10; ++i) {
          ibv_sge sge = e.sge(0, 2000);
          ibv_recv_wr wr{i, nullptr, &sge, 1}, *bad = nullptr;
          ASSERT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
        }
      });
  check(p.records);
  EXPECT_EQ(p.records.count("hca.cqe"), 20u);
  EXPECT_GT(p.records.count("hca.srq_wqe_fetch"), 0u);
}

TEST(TraceInvariants, UnreliableDatagrams) {
  Recorded p;
  p.options[0].type = p.options[1].type = IBV_QPT_UD;
  p.run(
      [](End& e) {
        ibv_ah* ah = e.peer_ah();
        ASSERT_NE(ah, nullptr);
        e.meet("posted");
        for (std::uint64_t i = 0; i < 5; ++i)
          ASSERT_EQ(e.send_to(i, ah, e.peer.qpn, e.o.qkey, {e.sge(0, 500)}, i == 4 ? unsigned{IBV_SEND_SIGNALED} : 0U),
                    0);
        e.wait(1);
        e.meet("done");
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(e.receive(i, 0, 1024), 0);
        e.meet("posted");
        e.wait(4);
        e.meet("done");
      });
  check(p.records);
  EXPECT_EQ(p.records.count("hca.cqe", "host0"), 1u);
  EXPECT_EQ(p.records.count("hca.cqe", "host1"), 4u);
  EXPECT_EQ(p.records.count("hca.message_drop"), 1u) << "the fifth finds no receive";
}

/// A whole workload.
struct RecordedRun {
  explicit RecordedRun(const ScenarioConfig& scenario) : simulation(scenario) {
    simulation.context.tracer.add_sink(std::make_unique<Recorder>(records));
    simulation.context.tracer.open({});
    simulation.run();
  }
  Records records;
  Simulation simulation;
};

TEST(TraceInvariants, PingPong) {
  RecordedRun run(one_workload(Op::send_lat, 4096, 50));
  check(run.records);
}

TEST(TraceInvariants, StreamOfReadsOnSmallBuffers) {
  ScenarioConfig s = one_workload(Op::read_bw, 16384, 50);
  s.hosts[0].pcie.root_port_credits.posted_headers = 4;
  s.hosts[0].pcie.endpoint_credits.completion_headers = 8;
  s.workloads[0].max_rd_atomic = 4;
  RecordedRun run(s);
  check(run.records);
  std::int64_t most = 0;
  for (const Level& l : run.records.levels)
    if (is(l, "hca.rd_atomic")) most = std::max(most, l.value);
  EXPECT_EQ(most, 4) << "as many as max_rd_atomic";
}

TEST(TraceInvariants, CompletionEvents) {
  ScenarioConfig s = one_workload(Op::send_lat, 64, 30);
  s.workloads[0].completion = CompletionMode::event;
  RecordedRun run(s);
  check(run.records);
  EXPECT_GT(run.records.count("kernel.irq"), 30u);
  for (const Instant& i : run.records.instants) {
    if (!is(i, "pcie.interrupt")) continue;
    const auto way = run.records.chain(*run.records.find(i.parent));
    const auto eqe = [](const Span* x) { return is(*x, "hca.eqe"); };
    EXPECT_TRUE(std::ranges::any_of(way, eqe)) << run.records.text(i);
  }
}

}  // namespace
}  // namespace sys::test
