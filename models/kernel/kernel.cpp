// SPDX-License-Identifier: Apache-2.0
// Run-time half of the kernel: interrupts to event queues, completion handlers, async events, pinning and mapping of user
// memory, address resolution. Booting the device is in boot.cpp.
// Source: mlx5_core eq.c, cq.c; mlx5_ib main.c, qp.c (event mapping), ib_core umem.c.
#include "kernel/kernel.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "kernel/trace_points.h"
#include "kernel/uverbs/uverbs_device.h"
#include "sim/check.h"

namespace kernel {

namespace prm = hca::prm;

Kernel::Kernel(sc_core::sc_module_name name, sim::Context& context, const KernelConfig& config,
               const Platform& platform)
    : sc_module(name),
      context_(context),
      config_(config),
      platform_(platform),
      space_(*platform.memory, platform.arena_base, platform.arena_size),
      dma_(space_, platform.iommu, platform.requester, config_.driver),
      commands_(context, config_, dma_, waiters_, platform.host),
      completion_work_(context, waiters_, "ib-comp-wq", config_.cq_poll.work_delay, spawn()),
      system_work_(context, waiters_, "kworker", config_.cq_poll.work_delay, spawn()),
      device_(std::make_unique<Device>(*this)),
      trace_(context, platform.host, host_lane(platform.host, "kernel"), sim::trace::TrackKind::instant),
      uverbs_(std::make_unique<UverbsClient>()),
      rdma_(*this, trace_),
      alloc_failures_(context.rng("host" + std::to_string(platform.host) + ".kernel.event_alloc")) {
  SIM_CHECK(!platform_.cores.empty(), "a kernel needs a core");
  for (cpu::Core* core : platform_.cores) interrupt_contexts_.push_back(std::make_unique<InterruptContext>(*core));
  thread_ = std::make_unique<cpu::Thread>(*platform_.cores.back(), *platform_.engine, space_,
                                          "host" + std::to_string(platform_.host) + ".kernel", platform_.thread_number,
                                          [this] { boot(); });
  commands_.set_worker(*thread_);
}

Kernel::~Kernel() = default;

void Kernel::start(sim::Picos t) { thread_->start(t); }

void Kernel::on_ready(void (*fn)(void*), void* arg) {
  if (ready_) fn(arg);
  else on_ready_.emplace_back(fn, arg);
}

sim::Counter& Kernel::counter(const std::string& name) {
  return context_.stats.counter("host" + std::to_string(platform_.host) + ".kernel." + name);
}

void Kernel::interrupt(std::uint64_t address, std::uint32_t data, sim::trace::Cause cause) {
  if (address < pcie::kInterruptWindow || address >= pcie::kInterruptWindow + (1U << 20) || data >= by_vector_.size() ||
      by_vector_[data] == nullptr) {
    counter("spurious_interrupts").add();
    return;
  }
  by_vector_[data]->on_interrupt(cause);
}

// Completion events -----------------------------------------------------------------------------------------------------

EventClient::Handling Kernel::completion_event(std::uint32_t cqn) {
  Mlx5Cq* const cq = find_cq(cqn);
  if (cq == nullptr) {
    counter("unknown_cqn").add();
    return Handling::none;
  }
  ++cq->arm_sn;
  if (cq->kernel != nullptr) return Handling::at_once;
  if (cq->listed) return Handling::none;
  cq->listed = true;
  return Handling::tasklet;
}

void Kernel::completion_handler(std::uint32_t cqn, sim::trace::Cause cause, const EventTimes& times) {
  Mlx5Cq* const cq = find_cq(cqn);
  if (cq == nullptr) return;
  cq->listed = false;
  if (cq->comp_handler != nullptr) cq->comp_handler(*cq, cause, times);
}

void Kernel::command_event(std::uint32_t slots, sim::trace::Cause cause) {
  commands_.on_event(slots, config_.interrupt.wake_up + config_.interrupt.context_switch, cause);
}

bool Kernel::atomic_alloc_fails() {
  const double share = config_.interrupt.event_alloc_failures;
  return share > 0 && alloc_failures_.chance(share);
}

void Kernel::add_cq(Mlx5Cq& cq) {
  if (cq.cqn >= cqs_.size()) cqs_.resize(cq.cqn + 1);
  cqs_[cq.cqn] = &cq;
}

void Kernel::remove_cq(Mlx5Cq& cq) {
  if (find_cq(cq.cqn) == &cq) cqs_[cq.cqn] = nullptr;
  comp_eq(cq.comp_vector).tasklet().remove(cq.cqn);
}

// Kernel threads -----------------------------------------------------------------------------------------------------------

std::unique_ptr<cpu::Thread> Kernel::create_thread(std::size_t core, const std::string& name,
                                                   std::function<void()> body) {
  return std::make_unique<cpu::Thread>(*platform_.cores.at(core), *platform_.engine, space_,
                                       "host" + std::to_string(platform_.host) + "." + name,
                                       platform_.more_thread_numbers + threads_created_++, std::move(body));
}

WorkQueue::Spawn Kernel::spawn() {
  return [this](std::size_t core, const std::string& name, std::function<void()> body) {
    return create_thread(core, name, std::move(body));
  };
}

Softirq& Kernel::softirq(std::size_t core) {
  if (softirqs_.size() <= core) softirqs_.resize(core + 1);
  if (softirqs_[core] == nullptr)
    softirqs_[core] = std::make_unique<Softirq>(
        context_, config_.cq_poll, *interrupt_contexts_.at(core),
        [&](auto body) { return create_thread(core, "irq_poll" + std::to_string(core), std::move(body)); });
  return *softirqs_[core];
}

sim::Picos Kernel::last_activity() const {
  sim::Picos t = sim::max(completion_work_.last_activity(), system_work_.last_activity());
  for (const auto& s : softirqs_)
    if (s != nullptr) t = sim::max(t, s->last_activity());
  return t;
}

// Async events ------------------------------------------------------------------------------------------------------------

void Kernel::async_event(const prm::Eqe& eqe, sim::trace::Cause cause) { deliver_async(eqe, cause); }

sim::Flow Kernel::deliver_async(prm::Eqe eqe, sim::trace::Cause cause) {
  co_await async_order_.acquire();  // an ordered work queue: events keep their order (S-AE-5)
  co_await context_.delay(config_.interrupt.async_work_delay);
  dispatch_async(eqe, cause);
  async_order_.release();
}

void Kernel::dispatch_async(const prm::Eqe& eqe, sim::trace::Cause cause) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&eqe);
  const auto tell = [&](Object& o, ibv_event_type type) {
    if (o.event_handler != nullptr) o.event_handler(o, type, cause);
  };
  const auto to_qp = [&](ibv_event_type type) {
    const auto it = qps_.find(prm::get(bytes, prm::kEqeQpn));
    if (it == qps_.end()) return counter("unknown_qpn").add();
    if (it->second->handles.empty()) tell(*it->second, type);
    for (Qp* handle : it->second->handles) tell(*handle, type);  // a shared QP tells everybody who has it open
  };
  const auto to_srq = [&](ibv_event_type type) {
    const auto it = srqs_.find(prm::get(bytes, prm::kEqeQpn));
    if (it == srqs_.end()) return counter("unknown_srqn").add();
    tell(*it->second, type);
  };
  const auto to_all = [&](ibv_event_type type, std::uint64_t port) {
    if (device_ != nullptr) device_->dispatch_event(type, port, cause);
  };
  switch (eqe.type) {
    case prm::kEventCqError: {
      Mlx5Cq* const cq = find_cq(prm::get(bytes, prm::kEqeCqErrCqn));
      if (cq == nullptr) return counter("unknown_cqn").add();
      return tell(*cq, IBV_EVENT_CQ_ERR);
    }
    case prm::kEventWqCatas:
      return to_qp(IBV_EVENT_QP_FATAL);
    case prm::kEventWqInvalReq:
      return to_qp(IBV_EVENT_QP_REQ_ERR);
    case prm::kEventWqAccess:
      return to_qp(IBV_EVENT_QP_ACCESS_ERR);
    case prm::kEventCommEst:
      return to_qp(IBV_EVENT_COMM_EST);
    case prm::kEventSqDrained:
      return to_qp(IBV_EVENT_SQ_DRAINED);
    case prm::kEventPathMig:
      return to_qp(IBV_EVENT_PATH_MIG);
    case prm::kEventPathMigFailed:
      return to_qp(IBV_EVENT_PATH_MIG_ERR);
    case prm::kEventSrqCatas:
      return to_srq(IBV_EVENT_SRQ_ERR);
    case prm::kEventSrqLimit:
      return to_srq(IBV_EVENT_SRQ_LIMIT_REACHED);
    case prm::kEventSrqLastWqe:
      return to_qp(IBV_EVENT_QP_LAST_WQE_REACHED);
    case prm::kEventInternalError:
      return to_all(IBV_EVENT_DEVICE_FATAL, 0);
    case prm::kEventPortChange: {
      const std::uint32_t port = prm::get(bytes, prm::kEqePort);
      switch (eqe.sub_type) {
        case prm::kPortDown:
        case prm::kPortActive: {
          const bool up = eqe.sub_type == prm::kPortActive;
          if (std::exchange(carrier_, up) != up) to_all(up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, port);
          return;
        }
        case prm::kPortLid:
          return to_all(IBV_EVENT_LID_CHANGE, port);
        case prm::kPortPkey:
          return to_all(IBV_EVENT_PKEY_CHANGE, port);
        case prm::kPortGuid:
          return to_all(IBV_EVENT_GID_CHANGE, port);
        case prm::kPortClientReregister:
          return to_all(IBV_EVENT_CLIENT_REREGISTER, port);
        default:
          return counter("unknown_port_events").add();
      }
    }
    default:
      counter("unknown_events").add();
  }
}

// Memory and addresses ------------------------------------------------------------------------------------------------------

int Kernel::acquire(memory::AddressSpace& user, memory::Va start, std::uint64_t length, UserRegion& region) {
  if (config_.driver.memlock_limit.n == 0) return -EPERM;
  if (length == 0 || start.v + length < start.v || start.v + length + memory::kPageSize < start.v) return -EINVAL;
  const std::uint64_t pages = ((start + (length - 1)).page() - start.page()) / memory::kPageSize + 1;
  if ((user.pinned_pages() + pages) * memory::kPageSize > config_.driver.memlock_limit.n) return -ENOMEM;
  charge(config_.driver.pin_page * static_cast<std::int64_t>(pages));
  const auto frames = user.pin(start, length);
  if (!frames) return -EFAULT;
  region.start = start;
  region.length = length;
  region.mapping = dma_.map(*frames);
  return 0;
}

void Kernel::release(memory::AddressSpace& user, UserRegion& region) {
  if (region.length == 0) return;
  dma_.unmap(region.mapping);
  user.unpin(region.start, region.length);
  region = {};
}

std::uint8_t Kernel::active_mtu() const {
  return std::min(rdma_mtu(config_.netdev.mtu.n), static_cast<std::uint8_t>(caps_.max_port_mtu));
}

int Kernel::add_address(const Gid& gid) {
  if (!ready_) return -ENODEV;
  for (std::size_t i = 0; i < device_->gids.length(); ++i)
    if (device_->gids.usable(i) && device_->gids.at(i).gid == gid) return -EEXIST;
  const std::vector<std::uint32_t> added = device_->gids.add(gid);
  if (added.empty()) return -ENOSPC;
  if (platform_.neighbours != nullptr) platform_.neighbours->add(gid, caps_.mac);
  return tell_gids(added);
}

int Kernel::remove_address(const Gid& gid) {
  if (!ready_) return -ENODEV;
  const std::vector<std::uint32_t> removed = device_->gids.remove(gid);
  if (removed.empty()) return -EADDRNOTAVAIL;
  if (platform_.neighbours != nullptr) platform_.neighbours->remove(gid);
  return tell_gids(removed);
}

// The device gets the entries first; then everybody hears that the table has changed.
int Kernel::tell_gids(const std::vector<std::uint32_t>& indices) {
  if (!device_->try_get()) return -ENODEV;
  int error = 0;
  for (const std::uint32_t i : indices) {
    if (device_->ops.add_gid != nullptr) error = device_->ops.add_gid(*device_, i, device_->gids.at(i));
    if (error != 0 && error != -EOPNOTSUPP) break;
    error = 0;
  }
  device_->put();
  if (error != 0) return error;
  prm::Eqe change{};  // the network device's notifier uses the work queue of the events
  change.type = prm::kEventPortChange;
  change.sub_type = prm::kPortGuid;
  prm::set(reinterpret_cast<std::byte*>(&change), prm::kEqePort, 1);
  deliver_async(change, {});
  return 0;
}

Mac Kernel::resolve(const Gid& gid, int& error) {
  error = 0;
  charge(config_.driver.neighbour_lookup);
  if (const auto group = multicast_mac(gid)) return *group;
  const GidTable& gids = device_->gids;
  for (std::size_t i = 0; i < gids.length(); ++i)
    if (gids.usable(i) && gids.at(i).gid == gid) return caps_.mac;
  if (platform_.neighbours != nullptr)
    if (const auto mac = platform_.neighbours->find(gid)) return *mac;
  charge(config_.driver.neighbour_timeout);
  error = -ETIMEDOUT;
  return 0;
}

}  // namespace kernel
