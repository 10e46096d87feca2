// SPDX-License-Identifier: Apache-2.0
// Unregistration and removal of the device under a process (S-DEV-8, S-DEV-9, A-72).
#include "kernel/uverbs/uverbs_device.h"
#include "machine.h"

namespace {

using namespace test;
using S = kernel::RegistrationStep;

/// A process with one of everything, and what it saw of the end of its device.
struct User : Verbs {
  explicit User(Machine& machine) : Verbs(machine) {}
  std::uint32_t pd = 0;
  Cq cq;
  Qp qp;
  std::uint32_t mr = 0;
  int chan = -1;
  std::byte* buffer = nullptr;
  memory::Va uar{};

  void set_up() {
    ASSERT_EQ(open(), 0);
    ASSERT_EQ(alloc_pd(pd), 0);
    chan = channel();
    ASSERT_EQ(create_cq(cq, 15, chan, 0x77), 0);
    ASSERT_EQ(create_qp(qp, pd, cq.handle, cq.handle), 0);
    bring(qp.handle, IBV_QPT_RC, IBV_QPS_RTS);
    buffer = static_cast<std::byte*>(m.user.alloc(1 << 16));
    ib_uverbs_reg_mr_resp r{};
    ASSERT_EQ(reg_mr(pd, buffer, 1 << 16, reinterpret_cast<std::uint64_t>(buffer), IBV_ACCESS_LOCAL_WRITE, r), 0);
    mr = r.mr_handle;
    const long at = p.mmap(fd, 4096, 0);
    ASSERT_GT(at, 0);
    uar = {static_cast<std::uint64_t>(at)};
  }
  int async_fd() { return static_cast<int>(context.base().async_fd); }
};

void expect_nothing_left(Machine& m) {
  EXPECT_TRUE(m.kernel->device_removed());
  EXPECT_EQ(m.kernel->dma().pages_mapped(), 0U);
  EXPECT_EQ(m.user.pinned_pages(), 0U);
  EXPECT_EQ(m.device.dma_faults, 0U);
  EXPECT_EQ(m.kernel->counter("objects_left_on_close").value, 0U);
  EXPECT_EQ(m.kernel->counter("teardown_failures").value, 0U);
  EXPECT_EQ(m.kernel->counter("uar_release_failures").value, 0U);
}

void remove(Machine& m, bool surprise) {
  cpu::current().sync();
  m.device.removed = surprise;
  m.kernel->remove_device(surprise);
}

class Removal : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Removal, testing::Values(false, true),
                         [](const auto& i) { return i.param ? "Surprise" : "Unbind"; });

TEST_P(Removal, BlockedReadersGetEioAndTheWatcherSeesDeviceFatalFirst_S_DEV_9_A_72) {
  Machine m;
  User u(m);
  long comp = 1, first = 1, second = 1;
  ib_uverbs_async_event_desc event{};
  m.program([&] {
    u.set_up();
    for (auto& t : m.programs) t->unpark(cpu::current().now());
    cpu::current().sleep(sim::Picos{50'000'000});
    remove(m, GetParam());
  });
  m.program([&] {
    cpu::current().park("start");
    std::uint64_t record = 0;
    comp = u.p.read(u.chan, &record, sizeof record);
  });
  m.program([&] {
    cpu::current().park("start");
    first = u.p.read(u.async_fd(), &event, sizeof event);
    std::uint64_t record[2];
    second = u.p.read(u.async_fd(), record, sizeof record);
  });
  m.run();
  EXPECT_EQ(comp, -EIO);
  EXPECT_EQ(first, static_cast<long>(sizeof event));
  EXPECT_EQ(event.event_type, static_cast<std::uint32_t>(IBV_EVENT_DEVICE_FATAL));
  EXPECT_EQ(second, -EIO);
  expect_nothing_left(m);
}

TEST_P(Removal, CommandsFailWithEioAndDestroySucceedsInAnyOrder_S_DEV_9) {
  Machine m;
  m.run([&] {
    User u(m);
    u.set_up();
    remove(m, GetParam());
    cpu::current().sleep(sim::Picos{1'000'000'000'000});
    ASSERT_TRUE(m.kernel->device_removed());
    std::uint32_t handle;
    EXPECT_EQ(u.alloc_pd(handle), -EIO);
    EXPECT_EQ(u.modify(u.qp.handle, Verbs::good(), IBV_QP_STATE), -EIO);
    EXPECT_EQ(u.channel(), -EIO);
    EXPECT_EQ(u.p.mmap(u.fd, 4096, 0), -EIO);
    cpu::current().mmio_store64(u.uar + prm::kUarCqDoorbell, 1);  // no effect, and no crash
    EXPECT_EQ(u.dealloc_pd(u.cq.handle), -EINVAL);                // handles stay typed
    EXPECT_EQ(u.dealloc_pd(99), -ENOENT);
    EXPECT_EQ(u.destroy_cq(u.cq.handle), 0);  // before its QP: nothing is in use any more
    EXPECT_EQ(u.destroy_cq(u.cq.handle), -ENOENT);
    EXPECT_EQ(u.destroy_qp(u.qp.handle), 0);
    EXPECT_EQ(u.dereg_mr(u.mr), 0);
    EXPECT_EQ(u.p.close(u.fd), 0);
    u.p.exit();
    EXPECT_EQ(u.p.open_files(), 0);
    EXPECT_EQ(u.p.open("/dev/infiniband/uverbs0", 2), -ENOENT);
    EXPECT_TRUE(u.p.sysfs_list("/sys/class/infiniband").empty());
    EXPECT_EQ(u.p.sysfs_list("/sys/class/infiniband_verbs"), std::vector<std::string>{"abi_version"});
  });
  EXPECT_TRUE(m.device.uar_writes.empty() || m.device.uar_writes.back().page == prm::kFirstUar);
  expect_nothing_left(m);
}

TEST_P(Removal, StepsInTheirOrder_S_DEV_8) {
  Machine m;
  m.run([&] {
    User u(m);
    u.set_up();
    remove(m, GetParam());
  });
  EXPECT_EQ(m.kernel->registration(),
            (std::vector<S>{S::name, S::query, S::caches, S::views, S::registered, S::clients, S::uevent, S::unmarked,
                            S::clients_detached, S::unreferenced, S::views_removed, S::torn_down}));
  expect_nothing_left(m);
}

TEST_P(Removal, ACommandUnderWayIsWaitedFor_S_DEV_8) {
  Machine m;
  m.device.command_time = sim::Picos{200'000'000};  // longer than everything else
  User u(m);
  int result = 1, later = 1;
  m.program([&] {
    ASSERT_EQ(u.open(), 0);
    cpu::current().sync();
    m.programs[1]->unpark(cpu::current().now());
    cpu::current().sleep(sim::Picos{20'000'000});
    remove(m, GetParam());
    cpu::current().sleep(sim::Picos{150'000'000});
    std::uint32_t pd;
    later = u.alloc_pd(pd);
  });
  m.program([&] {
    cpu::current().park("start");
    std::uint32_t pd;
    result = u.alloc_pd(pd);
  });
  m.run();
  EXPECT_EQ(result, GetParam() ? -EIO : 0);  // unbinding waits for it; a device that is gone does not answer
  EXPECT_EQ(later, -EIO);
  expect_nothing_left(m);
}

TEST(Removal, UnbindingGivesBackEverythingByCommands_S_DEV_8) {
  Machine m;
  m.run([&] {
    User u(m);
    u.set_up();
    remove(m, false);
  });
  EXPECT_TRUE(m.device.qps.empty() && m.device.cqs.empty() && m.device.mkeys.empty() && m.device.pds.empty());
  EXPECT_TRUE(m.device.uars.empty());
  EXPECT_TRUE(m.device.eqs.empty());
  EXPECT_TRUE(m.device.icm_pages.empty());
  EXPECT_FALSE(m.device.initialised);
  EXPECT_FALSE(m.device.enabled);
  for (const std::uint32_t vector : {0U, 1U, 2U, 3U}) EXPECT_EQ(m.device.msix_mask(vector), 1U);
  expect_nothing_left(m);
}

TEST(Removal, TheHealthPollFindsOutAtItsNextTurn) {
  kernel::KernelConfig config = default_config();
  config.device.removal_notice = kernel::RemovalNotice::health_poll;
  config.device.health_poll_interval = sim::Picos{7'000'000'000};
  Machine m(config);
  sim::Picos told{0};
  m.run([&] {
    User u(m);
    u.set_up();
    remove(m, true);
    ib_uverbs_async_event_desc event{};
    ASSERT_GT(u.p.read(u.async_fd(), &event, sizeof event), 0);
    told = cpu::current().now();
  });
  const sim::Picos poll = m.kernel->ready_at() + config.device.health_poll_interval;
  EXPECT_GE(told, poll);
  EXPECT_LT(told, poll + sim::Picos{20'000'000});
  expect_nothing_left(m);
}

TEST(Removal, HappensOnceAndOnlyToADeviceThatIsThere) {
  Machine m;
  m.kernel->remove_device(true);  // before the boot: there is nothing to remove
  m.run([&] {
    cpu::current().sync();
    remove(m, false);
    remove(m, false);
  });
  expect_nothing_left(m);
}

/// A client that notes what it is told.
struct Listener final : kernel::Client {
  std::vector<std::string>& log;
  std::string name;
  Listener(std::vector<std::string>& l, std::string n) : log(l), name(std::move(n)) {}
  int add(kernel::Device& d) override {
    log.push_back(name + " add " + d.name);
    return 0;
  }
  void remove(kernel::Device& d) override { log.push_back(name + " remove " + d.name); }
  void rename(kernel::Device& d) override { log.push_back(name + " rename " + d.name); }
};

TEST(Clients, AreTurnedOnInOrderAndOffInTheOppositeOne_S_DEV_7_S_DEV_8) {
  Machine m;
  std::vector<std::string> log;
  Listener a(log, "a"), b(log, "b"), late(log, "late");
  m.kernel->rdma().register_client(a);
  m.kernel->rdma().register_client(b);
  m.run([&] {
    m.kernel->rdma().register_client(late);
    EXPECT_EQ(m.kernel->rdma().rename_device(m.kernel->device(), "rdma7"), 0);
    EXPECT_EQ(m.process->sysfs_list("/sys/class/infiniband"), std::vector<std::string>{"rdma7"});
    EXPECT_EQ(m.process->sysfs_read("/sys/class/infiniband_verbs/uverbs0/ibdev"), "rdma7\n");
    cpu::current().sync();
    m.kernel->remove_device(false);
  });
  EXPECT_EQ(log, (std::vector<std::string>{"a add mlx5_0", "b add mlx5_0", "late add mlx5_0", "a rename rdma7",
                                           "b rename rdma7", "late rename rdma7", "late remove rdma7", "b remove rdma7",
                                           "a remove rdma7"}));
  expect_nothing_left(m);
}

TEST(Registration, SysfsComesBeforeTheNodeAndTheNodeBeforeTheUevent_S_DEV_7) {
  kernel::KernelConfig config = default_config();
  config.device.views = sim::Picos{1'000'000'000};
  config.device.client_attach = sim::Picos{2'000'000'000};
  config.device.uevent = sim::Picos{4'000'000'000};
  Machine m(config);
  std::map<std::string, sim::Picos> seen;
  m.program([&] {
     auto& p = *m.process;
     while (seen.size() < 3 && cpu::current().now() < sim::Picos{60'000'000'000}) {
       const auto note = [&](const char* what, bool there) {
         if (there) seen.emplace(what, cpu::current().now());
       };
       note("view", !p.sysfs_list("/sys/class/infiniband").empty());
       note("node", p.sysfs_list("/sys/class/infiniband_verbs").size() == 2);
       note("open", p.open("/dev/infiniband/uverbs0", 2) >= 0);
       cpu::current().sleep(sim::Picos{50'000'000});
     }
   }).start({});
  m.kernel->start({});
  m.engine.run();
  ASSERT_EQ(seen.size(), 3U);
  const auto about = [](sim::Picos d, sim::Picos expected) {
    return d > expected - sim::Picos{200'000'000} && d < expected + sim::Picos{200'000'000};
  };
  EXPECT_TRUE(about(seen["node"] - seen["view"], config.device.client_attach));
  EXPECT_TRUE(about(seen["open"] - seen["node"], config.device.uevent));
  EXPECT_LT(seen["view"], seen["node"]);
}

}  // namespace
