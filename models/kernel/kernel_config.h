// SPDX-License-Identifier: Apache-2.0
// Costs, sizes and policies of a host's kernel. Each duration is charged at exactly one place, named in its description.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/kernel_verbs_config.h"
#include "sim/config.h"
#include "sim/units.h"

namespace kernel {

/// From an event queue entry to a running reader: calibration rows H.msix, H.hardirq, H.wake.
struct InterruptConfig {
  sim::Picos irq_entry{900'000};
  sim::Picos eqe{450'000};
  sim::Picos eq_rearm{150'000};
  std::uint32_t eqe_budget = 128;
  sim::Picos tasklet_delay{300'000};
  sim::Picos comp_handler{200'000};
  sim::Picos tasklet_budget{2'000'000'000};
  sim::Picos async_work_delay{2'000'000};
  sim::Picos wake_up{1'000'000};
  sim::Picos context_switch{1'000'000};
  sim::Picos remote_wake_up{300'000};
  double event_alloc_failures = 0;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto part = sim::assumed("share of the 4.5 us that event mode adds to a one-way latency on a server");
    v("irq_entry", c.irq_entry, "from the MSI-X message to the first instruction of the handler",
      sim::assumed("0.45 to 1.8 us on Xeon and Linux"));
    v("eqe", c.eqe, "handling one event queue entry: owner check, dma_rmb, CQ look-up, queueing",
      sim::assumed("most of a 0.3 to 1.2 us mlx5 hard interrupt"));
    v("eq_rearm", c.eq_rearm, "end of the handler: consumer index doorbell with arm",
      sim::assumed("rest of the hard interrupt"));
    v("eqe_budget", c.eqe_budget, "entries that one interrupt handles at most", sim::spec("mlx5 driver: 128"),
      sim::Range{1, 65536});
    v("tasklet_delay", c.tasklet_delay, "from the end of the hard interrupt to the tasklet", part);
    v("comp_handler", c.comp_handler, "completion handler of one CQ in the tasklet: event allocation and queueing",
      part);
    v("tasklet_budget", c.tasklet_budget, "the tasklet reschedules itself after this long",
      sim::spec("mlx5 driver: 2 ms"));
    v("async_work_delay", c.async_work_delay,
      "from the interrupt of an asynchronous event to its delivery by a work queue",
      sim::assumed("one work queue wake-up"));
    v("wake_up", c.wake_up, "from the wake-up of a thread to the scheduler picking it",
      sim::assumed("half of the 1 to 4 us wake-up of a blocked reader, C-states off"));
    v("context_switch", c.context_switch, "switching to a woken thread",
      sim::assumed("half of the 1 to 4 us wake-up of a blocked reader"));
    v("remote_wake_up", c.remote_wake_up,
      "what a wake-up takes longer when the thread runs on another core than the tasklet: an inter-processor interrupt",
      sim::assumed("an IPI on one socket; no published figure"), sim::Range{0, 1e12});
    v("event_alloc_failures", c.event_alloc_failures,
      "share of the completion events whose atomic allocation fails: they are lost",
      sim::assumed("memory is not short"), sim::Range{0, 1});
  }
};

struct SyscallConfig {
  sim::Picos entry{60'000};
  sim::Picos exit{60'000};
  sim::Picos uverbs_command{500'000};
  sim::Picos event_read{120'000};
  sim::Picos poll_fd{80'000};
  sim::Picos epoll_ctl{300'000};
  sim::Picos epoll_event{60'000};
  sim::Picos file_open{2'000'000};
  sim::Picos sysfs_read{3'000'000};
  sim::Picos map_page{600'000};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("entry", c.entry, "user to kernel transition of each system call",
      sim::assumed("about 100 ns per null system call"));
    v("exit", c.exit, "kernel to user transition of each system call",
      sim::assumed("about 100 ns per null system call"));
    v("uverbs_command", c.uverbs_command, "copying, checking and dispatching one uverbs command",
      sim::assumed("no published figure"));
    v("event_read", c.event_read, "taking one record from an event file",
      sim::assumed("lock, list removal and copy_to_user"));
    v("poll_fd", c.poll_fd, "testing one file descriptor in poll()", sim::assumed("no published figure"));
    v("epoll_ctl", c.epoll_ctl, "changing one entry of the interest list of an epoll instance",
      sim::assumed("tree insertion and wait queue entry; no published figure"));
    v("epoll_event", c.epoll_event, "reporting one ready file in epoll_wait()", sim::assumed("no published figure"));
    v("file_open", c.file_open, "opening or closing a file", sim::assumed("path walk and inode work"));
    v("sysfs_read", c.sysfs_read, "opening and reading one sysfs attribute",
      sim::assumed("three system calls and a path walk"));
    v("map_page", c.map_page, "mapping or unmapping one device page", sim::assumed("VMA and page table work"));
  }
};

/// From what the moderation period of a CQ counts.
enum class CqPeriodMode : std::uint8_t { event, cqe };

}  // namespace kernel

template <>
struct sim::EnumNames<kernel::CqPeriodMode> {
  static constexpr std::array<std::pair<kernel::CqPeriodMode, std::string_view>, 2> values{
      {{kernel::CqPeriodMode::event, "event"}, {kernel::CqPeriodMode::cqe, "cqe"}}};
};

namespace kernel {

struct DriverConfig {
  sim::Picos pin_page{100'000};
  sim::Picos dma_map_page{60'000};
  sim::Picos dma_unmap_page{40'000};
  sim::Picos clear_page{60'000};
  sim::Picos command_dispatch{1'500'000};
  sim::Picos command_complete{400'000};
  sim::Picos command_poll{1'000'000};
  sim::Picos config_access{1'000'000};
  sim::Picos neighbour_lookup{500'000};
  sim::Picos neighbour_timeout{1'000'000'000'000};
  std::uint32_t comp_vectors = 0;
  std::vector<std::uint32_t> irq_affinity;
  std::uint32_t log_comp_eq_size = 11;
  std::uint32_t log_async_eq_size = 13;
  std::uint32_t log_command_eq_size = 8;
  std::uint32_t log_ack_req_freq = 8;
  std::uint64_t iova_top = 1ULL << 47;
  sim::Bytes memlock_limit{1ULL << 40};
  bool privileged = true;
  bool mlx5_no_sqd = false;
  CqPeriodMode cq_period_mode = CqPeriodMode::event;
  bool solicited_breaks_moderation = false;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("pin_page", c.pin_page, "pinning one page of user memory",
      sim::assumed("about 100 ns per page with warm page tables"));
    v("dma_map_page", c.dma_map_page, "building the IOMMU page-table entry of one page",
      sim::assumed("no published figure"));
    v("dma_unmap_page", c.dma_unmap_page, "removing the IOMMU page-table entry of one page",
      sim::assumed("no published figure"));
    v("clear_page", c.clear_page, "zeroing one page of kernel memory", sim::assumed("about 60 GB/s"));
    v("command_dispatch", c.command_dispatch, "work queue hand-over of a device command",
      sim::assumed("one kernel thread wake-up"));
    v("command_complete", c.command_complete, "handler of one finished device command",
      sim::assumed("copy of the output and wake-up"));
    v("command_poll", c.command_poll, "interval at which a command is polled for before the command event queue exists",
      sim::assumed("start-up only"), sim::Range{1, 1e12});
    v("config_access", c.config_access, "one access to the PCI configuration space of the device",
      sim::assumed("a non-posted round trip and its firmware"));
    v("neighbour_lookup", c.neighbour_lookup, "route and neighbour look-up for the remote MAC address",
      sim::assumed("cache hit"));
    v("neighbour_timeout", c.neighbour_timeout, "waiting for a neighbour that does not answer",
      sim::spec("Linux ib_core address resolution: 1 s"));
    v("comp_vectors", c.comp_vectors, "completion event queues; 0 = one per core, as far as the device has vectors",
      sim::spec("mlx5 driver"), sim::Range{0, 60});
    v("irq_affinity", c.irq_affinity,
      "cores that take the interrupts of completion vectors 0, 1, 2, …, again from the first when there are more "
      "vectors; empty = "
      "the cores of the host in order",
      sim::spec("mlx5 driver: spread over the cores"));
    v("log_comp_eq_size", c.log_comp_eq_size, "log2 of the entries of a completion event queue",
      sim::spec("mlx5 driver: 1024 + 0x80 spare"), sim::Range{3, 22});
    v("log_async_eq_size", c.log_async_eq_size, "log2 of the entries of the asynchronous event queue",
      sim::spec("mlx5 driver: 0x1000 + 0x80 spare"), sim::Range{3, 22});
    v("log_command_eq_size", c.log_command_eq_size, "log2 of the entries of the command event queue",
      sim::spec("mlx5 driver: 32 + 0x80 spare"), sim::Range{6, 22});
    v("log_ack_req_freq", c.log_ack_req_freq,
      "log2 of the packets between two acknowledgement requests inside a message of an RC QP",
      sim::spec("mlx5 driver: 8"), sim::Range{0, 15});
    v("iova_top", c.iova_top, "DMA addresses are given out downwards from here",
      sim::assumed("above all installed memory and all user addresses"), sim::Range{1ULL << 32, 1ULL << 48});
    v("memlock_limit", c.memlock_limit, "RLIMIT_MEMLOCK of each process",
      sim::assumed("unlimited, as RDMA hosts are set up"));
    v("privileged", c.privileged, "processes have CAP_NET_RAW (Q_Keys with bit 31)",
      sim::assumed("programs run by root"));
    v("mlx5_no_sqd", c.mlx5_no_sqd,
      "as the real driver, refuse to move a QP into SQD; otherwise SQD works as the InfiniBand specification says",
      sim::spec("InfiniBand QP states"));
    v("cq_period_mode", c.cq_period_mode,
      "the moderation period of a CQ starts with its last event, or the arm behind it, or anew with each CQE",
      sim::spec("mlx5 driver: from the event for CQs of programs"));
    v("solicited_breaks_moderation", c.solicited_breaks_moderation,
      "a solicited CQE makes an event at once, whatever the moderation", sim::spec("mlx5 driver: not set"));
  }
};

/// How the driver learns that its device has gone without a word.
enum class RemovalNotice : std::uint8_t { hotplug, health_poll };

}  // namespace kernel

template <>
struct sim::EnumNames<kernel::RemovalNotice> {
  static constexpr std::array<std::pair<kernel::RemovalNotice, std::string_view>, 2> values{
      {{kernel::RemovalNotice::hotplug, "hotplug"}, {kernel::RemovalNotice::health_poll, "health_poll"}}};
};

namespace kernel {

/// Registration of the RDMA device, and its end.
struct DeviceConfig {
  sim::Picos views{0};
  sim::Picos client_attach{0};
  sim::Picos uevent{0};
  RemovalNotice removal_notice = RemovalNotice::hotplug;
  sim::Picos hotplug_delay{100'000'000};
  sim::Picos health_poll_interval{2'000'000'000'000};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto start = sim::assumed("start-up is outside of what is measured");
    v("views", c.views, "creating the directories of a device in sysfs at its registration", start);
    v("client_attach", c.client_attach, "a client of the RDMA core, such as uverbs, takes up a device", start);
    v("uevent", c.uevent, "from the end of the registration to the ADD event, from which on programs see the device",
      start);
    v("removal_notice", c.removal_notice,
      "how the driver learns that its device was pulled out: the interrupt of the hot-plug slot, or its health poll",
      sim::assumed("a slot that reports a lost link"));
    v("hotplug_delay", c.hotplug_delay, "from the loss of the device to the driver's removal by the hot-plug slot",
      sim::assumed("interrupt and debounce of the slot driver"));
    v("health_poll_interval", c.health_poll_interval, "time between two reads of the health register of the device",
      sim::spec("mlx5 driver: 2 s"), sim::Range{1, 1e18});
  }
};

struct NetdevConfig {
  sim::Bytes mtu{9000};
  std::string ipv4;
  std::uint32_t gid_table_length = 16;
  std::uint32_t pkey_table_length = 1;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("mtu", c.mtu, "MTU of the Ethernet device; the active RDMA MTU is the largest that fits",
      sim::assumed("jumbo frames"), sim::Range{576, 65535});
    v("ipv4", c.ipv4, "IPv4 address; empty = given by the cluster", sim::assumed("unique per host"));
    v("gid_table_length", c.gid_table_length, "entries of the GID table",
      sim::assumed("enough for the addresses of one device"), sim::Range{2, 256});
    v("pkey_table_length", c.pkey_table_length, "entries of the P_Key table", sim::spec("RoCE: the default key only"),
      sim::Range{1, 1});
  }
};

struct KernelConfig {
  InterruptConfig interrupt;
  SyscallConfig syscall;
  DriverConfig driver;
  DeviceConfig device;
  NetdevConfig netdev;
  KernelVerbsConfig verbs;
  CqPollConfig cq_poll;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto part = sim::spec("part of the kernel");
    v("interrupt", c.interrupt, "interrupt handler, tasklet, event delivery and wake-up", part);
    v("syscall", c.syscall, "system calls", part);
    v("driver", c.driver, "memory management, device commands and event queues", part);
    v("device", c.device, "registration and removal of the RDMA device", part);
    v("netdev", c.netdev, "Ethernet device below the RDMA device", part);
    v("verbs", c.verbs, "data path of kernel consumers", part);
    v("cq_poll", c.cq_poll, "how the RDMA core polls CQs of kernel consumers", part);
  }
};

}  // namespace kernel
