// SPDX-License-Identifier: Apache-2.0
// Ten million completions a second on a thousand armed CQs and eight completion vectors. Whatever the races between interrupts,
// readers and arms: each message is polled once, each event is read once, and in the end nothing is owed.
#include <poll.h>

#include <array>
#include <cerrno>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using sim::Picos;

constexpr std::size_t kCqs = 1000, kMessages = 100, kVectors = 8, kSenders = 2;
constexpr Picos kInterval = 100_ns;  // between two messages

struct Shape {
  const char* name;
  std::size_t readers, channels;
};

std::ostream& operator<<(std::ostream& out, const Shape& s) { return out << s.name; }

/// What is known of one CQ, by its context.
struct Line {
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  std::uint64_t events = 0, polled = 0, spurious = 0;
  std::array<std::uint8_t, kMessages> seen{};
};

struct Storm {
  explicit Storm(const Shape& s) : shape(s) {
    HostConfig &sender = pair.scenario.hosts[0], &receiver = pair.scenario.hosts[1];
    for (HostConfig* h : {&sender, &receiver}) {  // what would hold the completions back
      h->hca.context.qpc_entries = h->hca.context.cqc_entries = 4096;
    }
    sender.cores = 4;
    receiver.cores = static_cast<std::uint32_t>(kVectors + 1 + shape.readers);
    receiver.hca.caps.comp_vectors = receiver.kernel.driver.comp_vectors = kVectors;
    pair.options[0].connect = pair.options[1].connect = false;
    lines.resize(kCqs);
    channels.resize(shape.channels);
    pair.run([this](End& e) { send_all(e); }, [this](End& e) { receive_all(e); });
  }

  // The peers' QP numbers and addresses, and both QPs of each pair to RTS.
  void connect(End& e, const std::vector<ibv_qp*>& qps) {
    std::vector<std::uint32_t> mine, theirs(kCqs);
    for (const ibv_qp* qp : qps) mine.push_back(qp->qp_num);
    ASSERT_EQ(e.process_.exchange->swap("numbers", mine.data(), theirs.data(), kCqs * sizeof mine[0]), 0);
    ibv_qp* const own = e.qp;
    for (std::size_t i = 0; i < kCqs; ++i) {
      e.qp = qps[i];
      e.peer.qpn = theirs[i];
      e.go_to_rts();
    }
    e.qp = own;
  }

  void send_all(End& e) {
    e.o.send_wr = 128;
    e.o.recv_wr = 1;
    std::vector<ibv_qp*> qps;
    for (std::size_t i = 0; i < kCqs; ++i) qps.push_back(e.make_qp(e.cq, e.cq));
    connect(e, qps);
    e.meet("armed");
    for (std::size_t s = 1; s < kSenders; ++s)
      pair.cluster->host(0)
          .create_thread(e.process_, s, "sender" + std::to_string(s), [this, s, qps] { send(qps, s); })
          .start(e.thread().now());
    started = e.thread().now();
    send(qps, 0);
    e.meet("received");
    for (ibv_qp* qp : qps) EXPECT_EQ(ibv_destroy_qp(qp), 0);
  }

  // Every kSenders-th message, one QP after the other, at a steady rate.
  void send(const std::vector<ibv_qp*>& qps, std::size_t first) {
    cpu::Thread& t = cpu::current();
    const Picos start = t.now();
    for (std::size_t n = first; n < kCqs * kMessages; n += kSenders) {
      const Picos due = start + kInterval * static_cast<std::int64_t>(n);
      if (due > t.now()) t.compute(due - t.now());
      t.sync();  // the senders share BlueFlame registers: neither may run ahead with their locks
      ibv_send_wr wr{}, *bad = nullptr;
      wr.opcode = IBV_WR_SEND_WITH_IMM;
      wr.imm_data = static_cast<std::uint32_t>(n / kCqs);
      ASSERT_EQ(ibv_post_send(qps[n % kCqs], &wr, &bad), 0);
    }
  }

  void receive_all(End& e) {
    e.o.send_wr = 1;
    e.o.recv_wr = kMessages;
    for (ibv_comp_channel*& c : channels) {
      c = ibv_create_comp_channel(e.context);
      e.process_.os.set_nonblock(c->fd, true);
    }
    std::vector<ibv_qp*> qps;
    std::vector<ibv_recv_wr> wrs(kMessages);
    for (std::size_t i = 0; i + 1 < kMessages; ++i) wrs[i].next = &wrs[i + 1];
    for (std::size_t i = 0; i < kCqs; ++i) {
      Line& l = lines[i];
      const auto vector = static_cast<int>(i % kVectors);
      l.cq = ibv_create_cq(e.context, 2 * kMessages, &l, channels[i % shape.channels], vector);
      ASSERT_NE(l.cq, nullptr);
      l.qp = e.make_qp(e.cq, l.cq);
      qps.push_back(l.qp);
    }
    connect(e, qps);
    for (Line& l : lines) {
      ibv_recv_wr* bad = nullptr;
      ASSERT_EQ(ibv_post_recv(l.qp, wrs.data(), &bad), 0);
      ASSERT_EQ(ibv_req_notify_cq(l.cq, 0), 0);
    }
    e.meet("armed");
    for (std::size_t r = 1; r < shape.readers; ++r)
      pair.cluster->host(1)
          .create_thread(e.process_, kVectors + r, "reader" + std::to_string(r), [this, r, &e] { read(e, r); })
          .start(e.thread().now());
    read(e, 0);
    while (reading != 0) e.thread().sleep(10_us);
    e.meet("received");
    for (std::size_t v = 0; v < kVectors; ++v)
      announced += pair.cluster->host(1).kernel().comp_eq(static_cast<std::uint32_t>(v)).consumer();
    for (Line& l : lines) {
      EXPECT_EQ(ibv_destroy_qp(l.qp), 0);
      EXPECT_EQ(ibv_destroy_cq(l.cq), 0) << "hangs while an event is not acknowledged";
    }
    for (ibv_comp_channel* c : channels) EXPECT_EQ(ibv_destroy_comp_channel(c), 0);
  }

  // S-CE-20: get the event, acknowledge, arm, poll until nothing comes.
  void read(End& e, std::size_t reader) {
    ++reading;
    ibv_comp_channel* const channel = channels[reader % shape.channels];
    for (Picos quiet{0}; received < kCqs * kMessages || quiet < 1_ms;) {
      ibv_cq* cq = nullptr;
      void* context = nullptr;
      if (ibv_get_cq_event(channel, &cq, &context) != 0) {
        ASSERT_EQ(errno, EAGAIN);
        kernel::PollFd fd{channel->fd, POLLIN, 0};
        const Picos before = cpu::current().now();
        if (e.process_.os.poll({&fd, 1}, 200_us) == 0 && received == kCqs * kMessages)
          quiet += cpu::current().now() - before;
        continue;
      }
      Line& l = *static_cast<Line*>(context);
      EXPECT_EQ(l.cq, cq);
      ++l.events;
      ibv_ack_cq_events(cq, 1);
      ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
      l.spurious += drain(l) == 0;
    }
    --reading;
  }
  std::uint64_t drain(Line& l) {
    std::uint64_t found = 0;
    std::array<ibv_wc, 16> wc;
    for (int n; (n = ibv_poll_cq(l.cq, static_cast<int>(wc.size()), wc.data())) > 0;) {
      for (int i = 0; i < n; ++i) {
        const ibv_wc& w = wc[static_cast<std::size_t>(i)];
        EXPECT_EQ(w.status, IBV_WC_SUCCESS);
        ++l.seen.at(w.imm_data);
      }
      found += static_cast<std::uint64_t>(n);
    }
    l.polled += found;
    received += found;
    if (received == kCqs * kMessages && last.n == 0) last = cpu::current().now() - started;
    return found;
  }

  const Shape shape;
  Pair pair;
  std::vector<Line> lines;
  std::vector<ibv_comp_channel*> channels;
  std::uint64_t received = 0, announced = 0;
  int reading = 0;
  Picos started{0}, last{0};
};

class EventStorm : public testing::TestWithParam<Shape> {};
TEST_P(EventStorm, EachCompletionIsPolledOnceAndEachEventReadOnce_S_CE_20) {
  Storm s(GetParam());
  EXPECT_EQ(s.received, kCqs * kMessages);
  std::uint64_t events = 0, spurious = 0;
  for (const Line& l : s.lines) {
    EXPECT_EQ(l.polled, kMessages);
    for (const std::uint8_t times : l.seen) EXPECT_EQ(times, 1);
    EXPECT_GE(l.events, 1u);
    EXPECT_LE(l.events, l.polled + l.spurious) << "an event stands for at least one completion, or a poll was first";
    events += l.events;
    spurious += l.spurious;
  }
  EXPECT_EQ(events, s.announced) << "every EQE became one record, every record was read";
  EXPECT_LT(spurious, events);
  EXPECT_EQ(s.pair.counter("host1.hca.events.eq_overruns"), 0u);
  EXPECT_EQ(s.pair.counter("host1.kernel.unknown_cqn"), 0u);
  EXPECT_LT(s.last, kInterval * static_cast<std::int64_t>(kCqs * kMessages) + 1_ms) << "10 M completions a second";
  RecordProperty("events", static_cast<int>(events));
  RecordProperty("spurious", static_cast<int>(spurious));
}
INSTANTIATE_TEST_SUITE_P(Readers, EventStorm,
                         testing::Values(Shape{"one", 1, 1}, Shape{"four_on_one_channel", 4, 1},
                                         Shape{"one_for_each_vector", kVectors, kVectors}),
                         [](const auto& i) { return std::string(i.param.name); });

}  // namespace
}  // namespace sys::test
