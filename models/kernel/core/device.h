// SPDX-License-Identifier: Apache-2.0
// The RDMA core's device (ib_device): its name, its state of registration, the driver's operations, its live objects.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel/core/gid_table.h"
#include "kernel/core/objects.h"
#include "kernel/core/udata.h"
#include "kernel/wait.h"

namespace kernel {

class Kernel;
class Device;
struct DmaBuffer;

/// What a device can do, in the members of ibv_device_attr_ex; the firmware version is a number, its text stays empty.
struct DeviceAttr {
  ibv_device_attr_ex ex{};
  std::uint64_t fw_ver = 0;
};

/// What the driver does for the RDMA core (ib_device_ops). Functions return 0 or -errno unless they say otherwise; an empty
/// slot means that the device lacks the function. `udata` is null when a kernel consumer calls. The make_ functions
/// give an object with room for the driver's members, as the sizes in ib_device_ops do.
struct DeviceOps {
  int (*query_device)(Device&, DeviceAttr&, const Udata*) = nullptr;
  int (*query_port)(Device&, std::uint32_t port, ibv_port_attr&) = nullptr;
  int (*query_pkey)(Device&, std::uint32_t port, std::uint32_t index, std::uint16_t& pkey) = nullptr;
  /// Tells the device a source address of its GID table.
  int (*add_gid)(Device&, std::uint32_t index, const GidEntry&) = nullptr;

  std::unique_ptr<Ucontext> (*make_ucontext)() = nullptr;
  int (*alloc_ucontext)(Ucontext&, const Udata*) = nullptr;
  void (*dealloc_ucontext)(Ucontext&) = nullptr;
  void (*disassociate_ucontext)(Ucontext&) = nullptr;
  /// Maps device memory into the process. Address or -errno; `offset` in bytes, as the driver encodes it.
  long (*mmap)(Ucontext&, std::size_t length, std::uint64_t offset) = nullptr;

  std::unique_ptr<Pd> (*make_pd)() = nullptr;
  int (*alloc_pd)(Pd&, const Udata*) = nullptr;
  int (*dealloc_pd)(Pd&) = nullptr;

  std::unique_ptr<Mr> (*make_mr)() = nullptr;
  int (*reg_user_mr)(Mr&, const UserMrAttr&, const Udata*) = nullptr;
  int (*rereg_user_mr)(Mr&, int flags, const UserMrAttr&, Pd& pd, const Udata*) = nullptr;
  int (*dereg_mr)(Mr&) = nullptr;
  /// A region of DMA-mapped kernel pages that begins at `iova`.
  int (*reg_phys_mr)(Mr&, const DmaBuffer&, std::uint64_t iova, std::uint64_t length, std::uint32_t access) = nullptr;
  /// A region of all DMA addresses, for kernel consumers; `access`: enum ibv_access_flags.
  int (*get_dma_mr)(Mr&, std::uint32_t access) = nullptr;

  std::unique_ptr<Mw> (*make_mw)() = nullptr;
  int (*alloc_mw)(Mw&, const Udata*) = nullptr;
  int (*dealloc_mw)(Mw&) = nullptr;

  std::unique_ptr<Cq> (*make_cq)() = nullptr;
  int (*create_cq)(Cq&, const CqInitAttr&, const Udata*) = nullptr;
  int (*modify_cq)(Cq&, std::uint16_t count, std::uint16_t period) = nullptr;
  int (*resize_cq)(Cq&, std::uint32_t cqe, const Udata*) = nullptr;
  int (*destroy_cq)(Cq&) = nullptr;

  std::unique_ptr<Srq> (*make_srq)() = nullptr;
  int (*create_srq)(Srq&, const SrqInitAttr&, const Udata*) = nullptr;
  int (*modify_srq)(Srq&, const ibv_srq_attr&, std::uint32_t mask, const Udata*) = nullptr;
  int (*query_srq)(Srq&, ibv_srq_attr&) = nullptr;
  int (*destroy_srq)(Srq&) = nullptr;

  std::unique_ptr<Qp> (*make_qp)() = nullptr;
  int (*create_qp)(Qp&, const QpInitAttr&, const Udata*) = nullptr;
  int (*modify_qp)(Qp&, const QpAttr&, std::uint32_t mask, const Udata*) = nullptr;
  int (*query_qp)(Qp&, ibv_qp_attr&, ibv_qp_init_attr&) = nullptr;
  int (*destroy_qp)(Qp&) = nullptr;

  std::unique_ptr<Ah> (*make_ah)() = nullptr;
  int (*create_ah)(Ah&, const ibv_ah_attr&, const Udata*) = nullptr;
  int (*destroy_ah)(Ah&) = nullptr;

  int (*attach_mcast)(Qp&, const Gid&) = nullptr;
  int (*detach_mcast)(Qp&, const Gid&) = nullptr;

  int (*alloc_xrcd)(XrcDomain&, const Udata*) = nullptr;
  int (*dealloc_xrcd)(XrcDomain&) = nullptr;

  // Data path of kernel consumers. Of poll_cq the number of completions, of req_notify_cq 1 if there are some already.
  int (*post_send)(Qp&, const ibv_send_wr*, const ibv_send_wr** bad) = nullptr;
  int (*post_recv)(Qp&, const ibv_recv_wr*, const ibv_recv_wr** bad) = nullptr;
  int (*post_srq_recv)(Srq&, const ibv_recv_wr*, const ibv_recv_wr** bad) = nullptr;
  int (*poll_cq)(Cq&, int num_entries, ibv_wc*) = nullptr;
  int (*req_notify_cq)(Cq&, std::uint32_t flags) = nullptr;

  /// Calls fn(name, pointer to member, required) for every slot, in the order above.
  template <class F>
  static void for_each_slot(F&& fn);
};

/// Steps of a device's life in their order: registration (S-DEV-7), then unregistration (S-DEV-8).
enum class RegistrationStep : std::uint8_t {
  name,
  query,
  caches,
  views,
  registered,
  clients,
  uevent,
  unmarked,
  clients_detached,
  unreferenced,
  views_removed,
  torn_down,
};

/// A port event or an event of the whole device, for the contexts of all processes and for kernel consumers.
using DeviceEventHandler = void (*)(void* arg, ibv_event_type type, std::uint64_t port, sim::trace::Cause cause);

class Device {
 public:
  explicit Device(Kernel& k);
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Takes over the callbacks of `table` whose slots are still empty: the first table that fills a slot wins (S-DEV-10).
  void set_ops(const DeviceOps& table);
  /// Name of a callback that every device needs and this one lacks; null if there is none.
  const char* missing_op() const;

  Kernel& kernel;  ///< of the host
  DeviceOps ops;
  std::string name;                  ///< "mlx5_0"; empty until registration begins
  std::uint32_t index = 0;           ///< from 0, over all devices of the host
  DeviceAttr attr;                   ///< as queried at registration
  GidTable gids;                     ///< of port 1
  std::vector<std::uint16_t> pkeys;  ///< of port 1

  // Registration state. References keep the device registered; its memory is the driver's.
  bool registered() const { return registered_; }
  /// Takes a reference. False when the device is not registered (any more).
  bool try_get() {
    if (registered_) ++references_;
    return registered_;
  }
  void put();
  /// Sets the mark, with the base reference; clears it and gives the base reference back.
  void enable();
  void disable();
  /// Blocks until the last reference is given back.
  void wait_unreferenced(Waiter& self);
  /// Its sysfs directories exist.
  bool visible() const { return visible_; }
  void show_views() { visible_ = true; }
  void hide_views() { visible_ = false; }

  // Live objects, in the order of their creation.
  void track(Object& object) { objects_.at(static_cast<std::size_t>(object.type)).push_back(&object); }
  void untrack(const Object& object) { std::erase(objects_.at(static_cast<std::size_t>(object.type)), &object); }
  const std::vector<Object*>& objects(ObjectType type) const { return objects_.at(static_cast<std::size_t>(type)); }
  void track(Ucontext& context) { contexts_.push_back(&context); }
  void untrack(const Ucontext& context) { std::erase(contexts_, &context); }
  const std::vector<Ucontext*>& contexts() const { return contexts_; }
  std::uint32_t next_context_number() { return ++last_context_number_; }

  void add_event_handler(DeviceEventHandler fn, void* arg) { handlers_.emplace_back(fn, arg); }
  void remove_event_handler(const void* arg) {
    std::erase_if(handlers_, [&](const auto& h) { return h.second == arg; });
  }
  void dispatch_event(ibv_event_type type, std::uint64_t port, sim::trace::Cause cause);

 private:
  std::array<std::vector<Object*>, kObjectTypes> objects_;
  std::vector<Ucontext*> contexts_;
  std::vector<std::pair<DeviceEventHandler, void*>> handlers_;
  std::uint32_t last_context_number_ = 0;
  std::uint32_t references_ = 0;
  bool registered_ = false, visible_ = false;
  Waiter* unregistering_ = nullptr;
};

template <class F>
void DeviceOps::for_each_slot(F&& fn) {
  constexpr bool kRequired = true, kOptional = false;
  fn("query_device", &DeviceOps::query_device, kRequired);
  fn("query_port", &DeviceOps::query_port, kRequired);
  fn("query_pkey", &DeviceOps::query_pkey, kRequired);
  fn("add_gid", &DeviceOps::add_gid, kOptional);
  fn("make_ucontext", &DeviceOps::make_ucontext, kOptional);
  fn("alloc_ucontext", &DeviceOps::alloc_ucontext, kOptional);
  fn("dealloc_ucontext", &DeviceOps::dealloc_ucontext, kOptional);
  fn("disassociate_ucontext", &DeviceOps::disassociate_ucontext, kOptional);
  fn("mmap", &DeviceOps::mmap, kOptional);
  fn("make_pd", &DeviceOps::make_pd, kRequired);
  fn("alloc_pd", &DeviceOps::alloc_pd, kRequired);
  fn("dealloc_pd", &DeviceOps::dealloc_pd, kRequired);
  fn("make_mr", &DeviceOps::make_mr, kRequired);
  fn("reg_user_mr", &DeviceOps::reg_user_mr, kOptional);
  fn("rereg_user_mr", &DeviceOps::rereg_user_mr, kOptional);
  fn("dereg_mr", &DeviceOps::dereg_mr, kRequired);
  fn("reg_phys_mr", &DeviceOps::reg_phys_mr, kOptional);
  fn("get_dma_mr", &DeviceOps::get_dma_mr, kRequired);
  fn("make_mw", &DeviceOps::make_mw, kOptional);
  fn("alloc_mw", &DeviceOps::alloc_mw, kOptional);
  fn("dealloc_mw", &DeviceOps::dealloc_mw, kOptional);
  fn("make_cq", &DeviceOps::make_cq, kRequired);
  fn("create_cq", &DeviceOps::create_cq, kRequired);
  fn("modify_cq", &DeviceOps::modify_cq, kOptional);
  fn("resize_cq", &DeviceOps::resize_cq, kOptional);
  fn("destroy_cq", &DeviceOps::destroy_cq, kRequired);
  fn("make_srq", &DeviceOps::make_srq, kOptional);
  fn("create_srq", &DeviceOps::create_srq, kOptional);
  fn("modify_srq", &DeviceOps::modify_srq, kOptional);
  fn("query_srq", &DeviceOps::query_srq, kOptional);
  fn("destroy_srq", &DeviceOps::destroy_srq, kOptional);
  fn("make_qp", &DeviceOps::make_qp, kRequired);
  fn("create_qp", &DeviceOps::create_qp, kRequired);
  fn("modify_qp", &DeviceOps::modify_qp, kRequired);
  fn("query_qp", &DeviceOps::query_qp, kOptional);
  fn("destroy_qp", &DeviceOps::destroy_qp, kRequired);
  fn("make_ah", &DeviceOps::make_ah, kOptional);
  fn("create_ah", &DeviceOps::create_ah, kOptional);
  fn("destroy_ah", &DeviceOps::destroy_ah, kOptional);
  fn("attach_mcast", &DeviceOps::attach_mcast, kOptional);
  fn("detach_mcast", &DeviceOps::detach_mcast, kOptional);
  fn("alloc_xrcd", &DeviceOps::alloc_xrcd, kOptional);
  fn("dealloc_xrcd", &DeviceOps::dealloc_xrcd, kOptional);
  fn("post_send", &DeviceOps::post_send, kRequired);
  fn("post_recv", &DeviceOps::post_recv, kRequired);
  fn("post_srq_recv", &DeviceOps::post_srq_recv, kOptional);
  fn("poll_cq", &DeviceOps::poll_cq, kRequired);
  fn("req_notify_cq", &DeviceOps::req_notify_cq, kRequired);
}

}  // namespace kernel
