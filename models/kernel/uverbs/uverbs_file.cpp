// SPDX-License-Identifier: Apache-2.0
// Header checks and dispatch of uverbs commands, handles and use counts, destruction. The write() ABI of kernel 6.x:
// legacy commands and the extended ones that replace them; the ioctl ABI is answered as by a kernel that lacks it.
// Source: ib_uverbs (uverbs_main.c verify_hdr, rdma_core.c), <rdma/ib_user_verbs.h>.
#include "kernel/uverbs/uverbs_file.h"

#include <algorithm>
#include <cerrno>

#include "kernel/core/verbs.h"
#include "kernel/trace_points.h"
#include "kernel/uverbs/uverbs_device.h"

namespace kernel {

UverbsFile::UverbsFile(std::shared_ptr<UverbsDevice> node, memory::AddressSpace& user, DescriptorTable& descriptors)
    : node_(std::move(node)),
      device_(node_->device),
      kernel_(device_->kernel),
      user_(user),
      descriptors_(descriptors),
      trace_(kernel_.context(), kernel_.platform().host, host_lane(kernel_.platform().host, "kernel.uverbs")) {}

UverbsFile::~UverbsFile() {
  if (device_ != nullptr) device_->remove_event_handler(this);
}

const UverbsFile::Method* UverbsFile::find_method(std::uint32_t command, bool extended) {
  static const Method kMethods[] = {
      {IB_USER_VERBS_CMD_GET_CONTEXT, false, sizeof(ib_uverbs_get_context), sizeof(ib_uverbs_get_context_resp),
       &UverbsFile::get_context},
      {IB_USER_VERBS_CMD_QUERY_DEVICE, false, sizeof(ib_uverbs_query_device), sizeof(ib_uverbs_query_device_resp),
       &UverbsFile::query_device},
      {IB_USER_VERBS_CMD_QUERY_PORT, false, sizeof(ib_uverbs_query_port), sizeof(ib_uverbs_query_port_resp),
       &UverbsFile::query_port},
      {IB_USER_VERBS_CMD_ALLOC_PD, false, sizeof(ib_uverbs_alloc_pd), sizeof(ib_uverbs_alloc_pd_resp),
       &UverbsFile::alloc_pd},
      {IB_USER_VERBS_CMD_DEALLOC_PD, false, sizeof(ib_uverbs_dealloc_pd), 0, &UverbsFile::dealloc_pd, true},
      {IB_USER_VERBS_CMD_CREATE_AH, false, sizeof(ib_uverbs_create_ah), sizeof(ib_uverbs_create_ah_resp),
       &UverbsFile::create_ah},
      {IB_USER_VERBS_CMD_DESTROY_AH, false, sizeof(ib_uverbs_destroy_ah), 0, &UverbsFile::destroy_ah, true},
      {IB_USER_VERBS_CMD_REG_MR, false, sizeof(ib_uverbs_reg_mr), sizeof(ib_uverbs_reg_mr_resp), &UverbsFile::reg_mr},
      {IB_USER_VERBS_CMD_REREG_MR, false, sizeof(ib_uverbs_rereg_mr), sizeof(ib_uverbs_rereg_mr_resp),
       &UverbsFile::rereg_mr},
      {IB_USER_VERBS_CMD_DEREG_MR, false, sizeof(ib_uverbs_dereg_mr), 0, &UverbsFile::dereg_mr, true},
      {IB_USER_VERBS_CMD_ALLOC_MW, false, sizeof(ib_uverbs_alloc_mw), sizeof(ib_uverbs_alloc_mw_resp),
       &UverbsFile::alloc_mw},
      {IB_USER_VERBS_CMD_DEALLOC_MW, false, sizeof(ib_uverbs_dealloc_mw), 0, &UverbsFile::dealloc_mw, true},
      {IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, false, sizeof(ib_uverbs_create_comp_channel),
       sizeof(ib_uverbs_create_comp_channel_resp), &UverbsFile::create_comp_channel},
      {IB_USER_VERBS_CMD_CREATE_CQ, false, sizeof(ib_uverbs_create_cq), sizeof(ib_uverbs_create_cq_resp),
       &UverbsFile::create_cq},
      {IB_USER_VERBS_CMD_RESIZE_CQ, false, sizeof(ib_uverbs_resize_cq), sizeof(ib_uverbs_resize_cq_resp),
       &UverbsFile::resize_cq},
      {IB_USER_VERBS_CMD_DESTROY_CQ, false, sizeof(ib_uverbs_destroy_cq), sizeof(ib_uverbs_destroy_cq_resp),
       &UverbsFile::destroy_cq, true},
      {IB_USER_VERBS_CMD_CREATE_QP, false, sizeof(ib_uverbs_create_qp), sizeof(ib_uverbs_create_qp_resp),
       &UverbsFile::create_qp},
      {IB_USER_VERBS_CMD_QUERY_QP, false, sizeof(ib_uverbs_query_qp), sizeof(ib_uverbs_query_qp_resp),
       &UverbsFile::query_qp},
      {IB_USER_VERBS_CMD_MODIFY_QP, false, sizeof(ib_uverbs_modify_qp), 0, &UverbsFile::modify_qp},
      {IB_USER_VERBS_CMD_DESTROY_QP, false, sizeof(ib_uverbs_destroy_qp), sizeof(ib_uverbs_destroy_qp_resp),
       &UverbsFile::destroy_qp, true},
      {IB_USER_VERBS_CMD_CREATE_SRQ, false, sizeof(ib_uverbs_create_srq), sizeof(ib_uverbs_create_srq_resp),
       &UverbsFile::create_srq},
      {IB_USER_VERBS_CMD_CREATE_XSRQ, false, sizeof(ib_uverbs_create_xsrq), sizeof(ib_uverbs_create_srq_resp),
       &UverbsFile::create_xsrq},
      {IB_USER_VERBS_CMD_MODIFY_SRQ, false, sizeof(ib_uverbs_modify_srq), 0, &UverbsFile::modify_srq},
      {IB_USER_VERBS_CMD_QUERY_SRQ, false, sizeof(ib_uverbs_query_srq), sizeof(ib_uverbs_query_srq_resp),
       &UverbsFile::query_srq},
      {IB_USER_VERBS_CMD_DESTROY_SRQ, false, sizeof(ib_uverbs_destroy_srq), sizeof(ib_uverbs_destroy_srq_resp),
       &UverbsFile::destroy_srq, true},
      {IB_USER_VERBS_CMD_OPEN_XRCD, false, sizeof(ib_uverbs_open_xrcd), sizeof(ib_uverbs_open_xrcd_resp),
       &UverbsFile::open_xrcd},
      {IB_USER_VERBS_CMD_CLOSE_XRCD, false, sizeof(ib_uverbs_close_xrcd), 0, &UverbsFile::close_xrcd, true},
      {IB_USER_VERBS_CMD_OPEN_QP, false, sizeof(ib_uverbs_open_qp), sizeof(ib_uverbs_create_qp_resp),
       &UverbsFile::open_qp},
      {IB_USER_VERBS_CMD_ATTACH_MCAST, false, sizeof(ib_uverbs_attach_mcast), 0, &UverbsFile::attach_mcast},
      {IB_USER_VERBS_CMD_DETACH_MCAST, false, sizeof(ib_uverbs_detach_mcast), 0, &UverbsFile::detach_mcast},
      {IB_USER_VERBS_EX_CMD_QUERY_DEVICE, true, sizeof(ib_uverbs_ex_query_device),
       offsetof(ib_uverbs_ex_query_device_resp, odp_caps), &UverbsFile::query_device_ex},
      {IB_USER_VERBS_EX_CMD_CREATE_CQ, true, sizeof(ib_uverbs_ex_create_cq), sizeof(ib_uverbs_ex_create_cq_resp),
       &UverbsFile::create_cq_ex},
      {IB_USER_VERBS_EX_CMD_MODIFY_CQ, true, sizeof(ib_uverbs_ex_modify_cq), 0, &UverbsFile::modify_cq_ex},
  };
  const auto* const end = std::end(kMethods);
  const auto* const m = std::find_if(std::begin(kMethods), end,
                                     [&](const Method& x) { return x.command == command && x.extended == extended; });
  return m == end ? nullptr : m;
}

/// -EOPNOTSUPP for a command that exists but that this device does not have, -EINVAL for one that does not exist.
int UverbsFile::known_command(std::uint32_t command, bool extended) {
  const bool known = extended ? command <= IB_USER_VERBS_EX_CMD_MODIFY_CQ : command <= IB_USER_VERBS_CMD_OPEN_QP;
  return known ? -EOPNOTSUPP : -EINVAL;
}

int UverbsFile::parse(const std::byte* data, std::size_t n, const Method*& method, Io& io) {
  if (data == nullptr) return -EFAULT;
  ib_uverbs_cmd_hdr hdr;
  if (n < sizeof hdr) return -EINVAL;
  std::memcpy(&hdr, data, sizeof hdr);
  constexpr std::uint32_t kAllowed = IB_USER_VERBS_CMD_COMMAND_MASK | IB_USER_VERBS_CMD_FLAG_EXTENDED;
  if ((hdr.command & ~kAllowed) != 0) return -EINVAL;
  const bool extended = (hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED) != 0;
  const std::uint32_t number = hdr.command & IB_USER_VERBS_CMD_COMMAND_MASK;
  method = find_method(number, extended);
  if (method == nullptr) return known_command(number, extended);
  io.request_size = method->request_size;
  io.response_size = method->response_size;
  std::uint64_t response = 0;
  if (extended) {
    ib_uverbs_ex_cmd_hdr ex;
    constexpr std::size_t kHeaders = sizeof hdr + sizeof ex;
    if (n < kHeaders) return -EINVAL;
    std::memcpy(&ex, data + sizeof hdr, sizeof ex);
    if ((hdr.in_words + std::size_t{ex.provider_in_words}) * 8 + kHeaders != n || ex.cmd_hdr_reserved != 0)
      return -EINVAL;
    if (hdr.in_words * std::size_t{8} < method->request_size || hdr.out_words * std::size_t{8} < method->response_size)
      return -ENOSPC;
    response = ex.response;
    if (response == 0 && (hdr.out_words != 0 || ex.provider_out_words != 0)) return -EINVAL;
    io.in = {data + kHeaders, hdr.in_words * std::size_t{8}};
    io.udata.in = {data + kHeaders + io.in.size(), ex.provider_in_words * std::size_t{8}};
    io.out = reinterpret_cast<std::byte*>(response);
    io.out_size = hdr.out_words * std::size_t{8};
    io.udata.out = {io.out + io.out_size, ex.provider_out_words * std::size_t{8}};
    return 0;
  }
  if (hdr.in_words * std::size_t{4} != n) return -EINVAL;
  if (n < sizeof hdr + method->request_size || hdr.out_words * std::size_t{4} < method->response_size) return -ENOSPC;
  io.in = {data + sizeof hdr, n - sizeof hdr};
  io.udata.in = io.in.subspan(method->request_size);
  if (method->response_size != 0) {
    std::memcpy(&response, io.in.data(), sizeof response);
    if (response == 0) return -EFAULT;
    io.out = reinterpret_cast<std::byte*>(response);
    io.out_size = hdr.out_words * std::size_t{4};
    io.udata.out = {io.out + method->response_size, io.out_size - method->response_size};
  }
  return 0;
}

long UverbsFile::command(const void* data, std::size_t n) {
  const Method* method = nullptr;
  Io io;
  cpu::Thread& t = cpu::current();
  const sim::Picos begin = t.now();
  const sim::trace::Cause caller = t.cause();
  const std::uint64_t span = trace_.begin_span(trace_points::syscall);
  if (span != 0) t.set_cause({0, span});
  t.compute(kernel_.config().syscall.uverbs_command);
  int error = parse(static_cast<const std::byte*>(data), n, method, io);
  if (error == 0) error = closed_ ? -EIO : 0;
  if (error == 0 && has_context_ == (method->run == &UverbsFile::get_context)) error = -EINVAL;
  if (error == 0) {
    begin_use();
    error = device_ == nullptr && !method->destroys ? -EIO : (this->*method->run)(io);
    end_use();
  }
  t.set_cause(caller);
  trace_.end_span(span, trace_points::syscall, caller, begin, begin, t.now(), method != nullptr ? method->command : ~0U,
                  static_cast<std::uint64_t>(-error));
  return error != 0 ? error : static_cast<long>(n);
}

// A command keeps the device registered. One that comes while the device goes waits until the objects are gone.
void UverbsFile::begin_use() {
  while (device_ != nullptr && (disassociating_ || !device_->registered())) {
    Waiter& self = kernel_.waiters().current();
    self.announce();
    held_up_.push_back(&self);
    self.block("the end of the device");
  }
  ++active_;
  if (device_ != nullptr) device_->try_get();
}

void UverbsFile::end_use() {
  if (active_ == 1 && closed_) release_all();
  if (device_ != nullptr) device_->put();
  if (--active_ == 0 && disassociator_ != nullptr) disassociator_->wake(kernel_.context().now());
}

namespace {

std::uint32_t number_of(const Object& o) {
  if (o.type == ObjectType::cq) return static_cast<const Cq&>(o).cqn;
  if (o.type == ObjectType::srq) return static_cast<const Srq&>(o).srqn;
  return o.type == ObjectType::qp ? static_cast<const Qp&>(o).qpn : 0;
}

void async_event(Object& o, ibv_event_type type, sim::trace::Cause cause) {
  Uobject& u = o.uobject;
  u.async->push({u.user_handle, static_cast<std::uint32_t>(type), number_of(o), &o, &u.async_events_reported, cause});
}

}  // namespace

std::uint32_t UverbsFile::add(std::unique_ptr<Object> object, std::uint64_t user_handle) {
  std::uint32_t handle = 0;
  for (const auto& [used, o] : objects_) {
    if (used != handle) break;
    ++handle;
  }
  object->uobject.handle = handle;
  object->uobject.user_handle = user_handle;
  object->uobject.async = async_;
  object->event_handler = &async_event;
  objects_[handle] = std::move(object);
  return handle;
}

int UverbsFile::destroy(ObjectType type, std::uint32_t handle, void (*before)(const Uobject&, void*), void* arg) {
  if (const auto it = removed_.find(handle); it != removed_.end()) {
    if (it->second.type != type) return -EINVAL;
    if (before != nullptr) before(it->second.uobject, arg);
    removed_.erase(it);
    return 0;
  }
  const auto it = objects_.find(handle);
  if (it == objects_.end()) return -ENOENT;
  Object& o = *it->second;
  if (o.type != type) return -EINVAL;
  if (o.uobject.destroying || o.uobject.commands != 0 || o.usecnt != 0) return -EBUSY;
  o.uobject.destroying = true;
  if (const int error = tear_down(o); error != 0) {
    o.uobject.destroying = false;
    return error;
  }
  if (before != nullptr) before(o.uobject, arg);
  if (disassociating_) removed_.emplace(handle, Removed{type, o.uobject});
  objects_.erase(handle);
  return 0;
}

// Records of the object that nobody has read yet go with it.
int UverbsFile::tear_down(Object& o) {
  const int error = o.type == ObjectType::xrcd ? tear_down_xrcd(static_cast<Xrcd&>(o)) : ib_destroy(o);
  if (error != 0) return error;
  if (o.uobject.async != nullptr) o.uobject.async->drop(&o);
  if (o.uobject.channel != nullptr) o.uobject.channel->drop(&o);
  return 0;
}

void UverbsFile::close() {
  closed_ = true;
  removed_.clear();
  if (active_ != 0 || device_ == nullptr || disassociating_) return;  // the last command does it, or there is nothing
  begin_use();
  end_use();
}

void UverbsFile::device_fatal() {
  if (async_ != nullptr && !closed_) device_event(this, IBV_EVENT_DEVICE_FATAL, 0, {});
}

void UverbsFile::disassociate() {
  disassociating_ = true;
  disassociator_ = &kernel_.waiters().current();
  while (active_ != 0) {
    disassociator_->announce();
    disassociator_->block("commands on a device that goes");
  }
  disassociator_ = nullptr;
  release_all();
  disassociating_ = false;
  device_ = nullptr;
  if (closed_) removed_.clear();
  for (const auto& weak : channels_)
    if (const auto channel = weak.lock()) channel->disassociate();
  if (async_ != nullptr) async_->disassociate();
  for (Waiter* w : std::exchange(held_up_, {})) w->wake(kernel_.context().now());
}

void UverbsFile::release_all() {
  if (std::exchange(released_, true)) return;
  leave_all_groups();
  // Objects that others still refer to wait for the next pass.
  for (bool progress = true; progress && !objects_.empty();) {
    progress = false;
    std::vector<std::pair<std::uint32_t, ObjectType>> all;
    for (const auto& [handle, o] : objects_) all.emplace_back(handle, o->type);
    for (auto it = all.rbegin(); it != all.rend(); ++it) progress |= destroy(it->second, it->first) == 0;
  }
  if (!objects_.empty()) kernel_.counter("objects_left_on_close").add(objects_.size());
  device_->remove_event_handler(this);
  if (ucontext_ == nullptr) return;
  if (disassociating_) {
    descriptors_.disconnect_mappings(*this);
    if (device_->ops.disassociate_ucontext != nullptr) device_->ops.disassociate_ucontext(*ucontext_);
  }
  device_->untrack(*ucontext_);
  device_->ops.dealloc_ucontext(*ucontext_);
  ucontext_ = nullptr;
  if (!disassociating_) async_->disassociate();
}

}  // namespace kernel
