// SPDX-License-Identifier: Apache-2.0
// epoll on completion channels: level and edge triggered, one-shot, fairness, wrong calls, costs, and files that are closed.
#include "kernel/epoll.h"

#include <sys/epoll.h>

#include <array>

#include "machine.h"

namespace {

using namespace test;
using sim::Picos;

constexpr auto kIn = static_cast<std::uint32_t>(EPOLLIN);
constexpr auto kEdge = kIn | static_cast<std::uint32_t>(EPOLLET);
constexpr auto kOnce = kIn | static_cast<std::uint32_t>(EPOLLONESHOT);

/// Some channels with a CQ each, and an epoll instance.
struct Channels : Verbs {
  Channels(Machine& machine, std::size_t n) : Verbs(machine), cqs(n) {
    EXPECT_EQ(open(), 0);
    for (std::size_t i = 0; i < n; ++i) {
      fds.push_back(channel());
      EXPECT_EQ(p.set_nonblock(fds[i], true), 0);
      EXPECT_EQ(create_cq(cqs[i], 15, fds[i], i), 0);
    }
    epfd = p.epoll_create();
    EXPECT_GE(epfd, 0);
  }
  int add(std::size_t i, std::uint32_t events) { return p.epoll_ctl(epfd, EPOLL_CTL_ADD, fds[i], {events, 100 + i}); }
  /// Posts a completion and lets its event come.
  void complete(std::size_t i) {
    m.device.post_completion(cqs[i].cqn);
    cpu::current().sleep(Picos{50'000'000});
  }
  /// Data of the files that are ready now.
  std::vector<std::uint64_t> ready(std::size_t most = 8, Picos timeout = {}) {
    std::vector<kernel::EpollEvent> out(most);
    const int n = p.epoll_wait(epfd, out, timeout);
    EXPECT_GE(n, 0);
    std::vector<std::uint64_t> data;
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(out[static_cast<std::size_t>(i)].events, kIn);
      data.push_back(out[static_cast<std::size_t>(i)].data);
    }
    return data;
  }
  bool read(std::size_t i) {
    std::uint64_t element = 0;
    return p.read(fds[i], &element, 8) == 8 && element == i;
  }

  std::vector<Verbs::Cq> cqs;
  std::vector<int> fds;
  int epfd = -1;
};
using Ready = std::vector<std::uint64_t>;

TEST(Epoll, LevelTriggeredReportsAsLongAsARecordIsThere_S_CE_11) {
  Machine m;
  m.run([&] {
    Channels c(m, 2);
    ASSERT_EQ(c.add(0, kIn), 0);
    ASSERT_EQ(c.add(1, kIn), 0);
    EXPECT_EQ(c.ready(), Ready{});
    c.complete(1);
    EXPECT_EQ(c.ready(), Ready{101});
    EXPECT_EQ(c.ready(), Ready{101});
    c.complete(0);
    EXPECT_EQ(c.ready(), (Ready{100, 101}));
    EXPECT_TRUE(c.read(1));
    EXPECT_EQ(c.ready(), Ready{100});
    EXPECT_TRUE(c.read(0));
    EXPECT_EQ(c.ready(), Ready{});
  });
}

TEST(Epoll, EdgeTriggeredReportsEachArrivalOnce_S_CE_11) {
  Machine m;
  m.run([&] {
    Channels c(m, 1);
    c.complete(0);
    ASSERT_EQ(c.add(0, kEdge), 0);
    EXPECT_EQ(c.ready(), Ready{100}) << "it was readable when it was added";
    EXPECT_EQ(c.ready(), Ready{}) << "whoever does not read it all waits for ever";
    c.complete(0);
    EXPECT_EQ(c.ready(), Ready{100});
    EXPECT_TRUE(c.read(0) && c.read(0));
    EXPECT_EQ(c.ready(), Ready{});
    c.complete(0);
    EXPECT_TRUE(c.read(0));
    EXPECT_EQ(c.ready(), Ready{}) << "nothing is left to read";
  });
}

TEST(Epoll, OneShotIsQuietUntilItIsModified_S_CE_11) {
  Machine m;
  m.run([&] {
    Channels c(m, 1);
    ASSERT_EQ(c.add(0, kOnce), 0);
    c.complete(0);
    EXPECT_EQ(c.ready(), Ready{100});
    EXPECT_EQ(c.ready(), Ready{});
    ASSERT_EQ(c.p.epoll_ctl(c.epfd, EPOLL_CTL_MOD, c.fds[0], {kOnce, 7}), 0);
    EXPECT_EQ(c.ready(), Ready{7});
  });
}

TEST(Epoll, ManyReadyFilesTakeTurns) {
  Machine m;
  m.run([&] {
    Channels c(m, 3);
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(c.add(i, kIn), 0);
      c.complete(i);
    }
    EXPECT_EQ(c.ready(2), (Ready{100, 101}));
    EXPECT_EQ(c.ready(2), (Ready{102, 100}));
    EXPECT_EQ(c.ready(2), (Ready{101, 102}));
  });
}

TEST(Epoll, WakesTheWaiterAndKeepsTimeLimits) {
  Machine m;
  m.run([&] {
    Channels c(m, 2);
    ASSERT_EQ(c.add(0, kEdge), 0);
    ASSERT_EQ(c.add(1, kIn), 0);
    cpu::Thread& t = cpu::current();
    t.sync();
    Picos before = t.now();
    EXPECT_EQ(c.ready(8, Picos{30'000'000}), Ready{});
    const auto& s = m.kernel->config().syscall;
    EXPECT_EQ(t.now() - before, Picos{30'000'000} + s.entry + s.exit);
    t.sync();
    m.device.post_completion(c.cqs[0].cqn);
    before = t.now();
    EXPECT_EQ(c.ready(8, Picos{-1}), Ready{100});
    const auto& i = m.kernel->config().interrupt;
    EXPECT_EQ((t.now() - before).n, (i.irq_entry + i.eqe + i.eq_rearm + i.tasklet_delay + i.comp_handler + i.wake_up +
                                     i.context_switch + s.epoll_event + s.exit)
                                        .n);
  });
}

TEST(Epoll, WrongCalls) {
  Machine m;
  m.run([&] {
    Channels c(m, 1);
    const auto ctl = [&](int ep, int op, int fd, std::uint32_t events = kIn) {
      return c.p.epoll_ctl(ep, op, fd, {events, 0});
    };
    EXPECT_EQ(ctl(55, EPOLL_CTL_ADD, c.fds[0]), -EBADF);
    EXPECT_EQ(ctl(c.epfd, EPOLL_CTL_ADD, 55), -EBADF);
    EXPECT_EQ(ctl(c.fds[0], EPOLL_CTL_ADD, c.fds[0]), -EINVAL) << "no epoll instance";
    EXPECT_EQ(ctl(c.epfd, EPOLL_CTL_ADD, c.fd), -EPERM) << "the device file has no poll";
    EXPECT_EQ(ctl(c.epfd, 77, c.fds[0]), -EINVAL);
    EXPECT_EQ(ctl(c.epfd, EPOLL_CTL_MOD, c.fds[0]), -ENOENT);
    EXPECT_EQ(ctl(c.epfd, EPOLL_CTL_DEL, c.fds[0]), -ENOENT);
    EXPECT_EQ(ctl(c.epfd, EPOLL_CTL_ADD, c.fds[0], EPOLLOUT), -EINVAL) << "not modelled";
    EXPECT_EQ(ctl(c.epfd, EPOLL_CTL_ADD, c.fds[0]), 0);
    EXPECT_EQ(ctl(c.epfd, EPOLL_CTL_ADD, c.fds[0]), -EEXIST);
    EXPECT_EQ(ctl(c.epfd, EPOLL_CTL_DEL, c.fds[0]), 0);
    std::array<kernel::EpollEvent, 1> out;
    EXPECT_EQ(c.p.epoll_wait(c.fds[0], out, {}), -EINVAL);
    EXPECT_EQ(c.p.epoll_wait(55, out, {}), -EBADF);
    EXPECT_EQ(c.p.epoll_wait(c.epfd, {}, {}), -EINVAL);
    EXPECT_EQ(c.p.close(c.epfd), 0);
    EXPECT_EQ(c.p.epoll_wait(c.epfd, out, {}), -EBADF);
  });
}

TEST(Epoll, AClosedChannelLeavesTheList) {
  Machine m;
  m.run([&] {
    Channels c(m, 2);
    ASSERT_EQ(c.add(0, kIn), 0);
    ASSERT_EQ(c.add(1, kIn), 0);
    ASSERT_EQ(c.destroy_cq(c.cqs[0].handle), 0);
    ASSERT_EQ(c.p.close(c.fds[0]), 0);
    c.complete(1);
    EXPECT_EQ(c.ready(), Ready{101});
  });
}

TEST(Epoll, AnInstanceCanBePolled) {
  Machine m;
  m.run([&] {
    Channels c(m, 1);
    ASSERT_EQ(c.add(0, kIn), 0);
    kernel::PollFd p{c.epfd, static_cast<short>(EPOLLIN), 0};
    EXPECT_EQ(c.p.poll({&p, 1}, {}), 0);
    m.device.post_completion(c.cqs[0].cqn);
    EXPECT_EQ(c.p.poll({&p, 1}, Picos{-1}), 1);
    EXPECT_EQ(c.ready(), Ready{100});
  });
}

// Closing a channel while a reader blocks in it: the reader gets EIO (S-CE-11).
TEST(Channel, CloseWhileAReaderBlocks_S_CE_11) {
  Machine m;
  Verbs v(m);
  int chan = -1;
  long result = 0;
  m.program([&] {
    ASSERT_EQ(v.open(), 0);
    chan = v.channel();
    cpu::current().sync();
    m.programs[1]->unpark(cpu::current().now());
    std::uint64_t element = 0;
    result = v.p.read(chan, &element, 8);
  });
  m.program([&] {
    cpu::current().park("start");
    cpu::current().sleep(Picos{10'000'000});
    EXPECT_EQ(v.p.close(chan), 0);
  });
  m.run();
  EXPECT_EQ(result, -EIO);
}

// Each of several readers gets events, none gets one twice, and one that loses the race sleeps again.
TEST(Channel, ManyReadersRaceForEveryEvent_S_CE_11) {
  constexpr unsigned kReaders = 4, kEvents = 40;
  Machine m;
  Verbs v(m);
  int chan = -1;
  std::vector<Verbs::Cq> cqs(kEvents);
  std::vector<unsigned> seen(kEvents), by(kReaders);
  m.program([&] {
    ASSERT_EQ(v.open(), 0);
    chan = v.channel();
    for (unsigned i = 0; i < kEvents; ++i) ASSERT_EQ(v.create_cq(cqs[i], 15, chan, i, i % 2), 0);
    cpu::current().sync();
    for (unsigned r = 1; r <= kReaders; ++r) m.programs[r]->unpark(cpu::current().now());
    for (const Verbs::Cq& cq : cqs) {
      m.device.post_completion(cq.cqn);
      cpu::current().sleep(Picos{300'000});
    }
  });
  for (unsigned r = 0; r < kReaders; ++r)
    m.program(
        [&, r] {
          cpu::current().park("start");
          for (unsigned i = 0; i < kEvents / kReaders; ++i) {
            std::uint64_t element = 0;
            ASSERT_EQ(v.p.read(chan, &element, 8), 8);
            ++seen.at(element);
            ++by[r];
          }
        },
        r % 2 != 0 ? &m.core1 : nullptr);
  m.run();
  EXPECT_EQ(seen, std::vector<unsigned>(kEvents, 1));
  EXPECT_EQ(by, std::vector<unsigned>(kReaders, kEvents / kReaders));
}

}  // namespace
