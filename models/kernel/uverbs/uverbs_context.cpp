// SPDX-License-Identifier: Apache-2.0
// Commands about the opened device as a whole: GET_CONTEXT, QUERY_DEVICE, QUERY_PORT, completion channels, mmap.
// Source: ib_uverbs uverbs_cmd.c, uverbs_main.c.
#include <algorithm>
#include <cerrno>

#include "kernel/core/device.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

void UverbsFile::device_event(void* file, ibv_event_type type, std::uint64_t port, sim::trace::Cause cause) {
  static_cast<UverbsFile*>(file)->async_->push(
      {port, static_cast<std::uint32_t>(type), static_cast<std::uint32_t>(port), nullptr, nullptr, cause});
}

int UverbsFile::get_context(Io& io) {
  if (device_->ops.alloc_ucontext == nullptr) return -EOPNOTSUPP;
  auto context = device_->ops.make_ucontext();
  context->device = device_;
  context->user = &user_;
  context->owner = &descriptors_.owner();
  if (const int error = device_->ops.alloc_ucontext(*context, &io.udata); error != 0)
    return error == -EAGAIN ? -ENOMEM : error;
  async_ =
      std::make_shared<EventFile>(kernel_.context(), kernel_.config(), EventFile::Kind::async, kernel_.platform().host);
  const int fd = descriptors_.install(async_, true);
  if (fd < 0) {
    device_->ops.dealloc_ucontext(*context);
    async_ = nullptr;
    return fd;
  }
  context->number = device_->next_context_number();
  ucontext_ = std::move(context);
  device_->track(*ucontext_);
  device_->add_event_handler(&UverbsFile::device_event, this);
  io.respond(ib_uverbs_get_context_resp{static_cast<std::uint32_t>(fd), kernel_.comp_vectors()});
  has_context_ = true;
  return 0;
}

namespace {

ib_uverbs_query_device_resp response(const DeviceAttr& attr) {
  const ibv_device_attr& a = attr.ex.orig_attr;
  const auto u = [](int v) { return static_cast<std::uint32_t>(v); };
  ib_uverbs_query_device_resp r{};
  r.fw_ver = attr.fw_ver;
  r.node_guid = a.node_guid;
  r.sys_image_guid = a.sys_image_guid;
  r.max_mr_size = a.max_mr_size;
  r.page_size_cap = a.page_size_cap;
  r.vendor_id = a.vendor_id;
  r.vendor_part_id = a.vendor_part_id;
  r.hw_ver = a.hw_ver;
  r.max_qp = u(a.max_qp);
  r.max_qp_wr = u(a.max_qp_wr);
  r.device_cap_flags = a.device_cap_flags;
  r.max_sge = u(a.max_sge);
  r.max_sge_rd = u(a.max_sge_rd);
  r.max_cq = u(a.max_cq);
  r.max_cqe = u(a.max_cqe);
  r.max_mr = u(a.max_mr);
  r.max_mw = u(a.max_mw);
  r.max_pd = u(a.max_pd);
  r.max_srq = u(a.max_srq);
  r.max_srq_wr = u(a.max_srq_wr);
  r.max_srq_sge = u(a.max_srq_sge);
  r.max_qp_rd_atom = u(a.max_qp_rd_atom);
  r.max_qp_init_rd_atom = u(a.max_qp_init_rd_atom);
  r.max_res_rd_atom = u(a.max_res_rd_atom);
  r.atomic_cap = a.atomic_cap;
  r.max_mcast_grp = u(a.max_mcast_grp);
  r.max_mcast_qp_attach = u(a.max_mcast_qp_attach);
  r.max_total_mcast_qp_attach = u(a.max_total_mcast_qp_attach);
  r.max_ah = u(a.max_ah);
  r.max_pkeys = a.max_pkeys;
  r.local_ca_ack_delay = a.local_ca_ack_delay;
  r.phys_port_cnt = a.phys_port_cnt;
  return r;
}

}  // namespace

int UverbsFile::query_device(Io& io) {
  io.respond(response(device_->attr));
  return 0;
}

int UverbsFile::query_device_ex(Io& io) {
  const auto cmd = io.request<ib_uverbs_ex_query_device>();
  if (cmd.comp_mask != 0 || cmd.reserved != 0) return -EINVAL;
  DeviceAttr attr;
  if (const int error = device_->ops.query_device(*device_, attr, &io.udata); error != 0) return error;
  ib_uverbs_ex_query_device_resp r{};
  r.base = response(attr);
  r.response_length = static_cast<std::uint32_t>(std::min(sizeof r, io.out_size));
  r.device_cap_flags_ex = attr.ex.device_cap_flags_ex;
  r.timestamp_mask = attr.ex.completion_timestamp_mask;
  r.hca_core_clock = attr.ex.hca_core_clock;
  r.cq_moderation_caps.max_cq_moderation_count = attr.ex.cq_mod_caps.max_cq_count;
  r.cq_moderation_caps.max_cq_moderation_period = attr.ex.cq_mod_caps.max_cq_period;
  io.respond(r);
  return 0;
}

int UverbsFile::query_port(Io& io) {
  const auto cmd = io.request<ib_uverbs_query_port>();
  ibv_port_attr a{};
  if (const int error = device_->ops.query_port(*device_, cmd.port_num, a); error != 0) return error;
  ib_uverbs_query_port_resp r{};
  r.port_cap_flags = a.port_cap_flags;
  r.max_msg_sz = a.max_msg_sz;
  r.gid_tbl_len = static_cast<std::uint32_t>(a.gid_tbl_len);
  r.pkey_tbl_len = a.pkey_tbl_len;
  r.state = static_cast<std::uint8_t>(a.state);
  r.max_mtu = static_cast<std::uint8_t>(a.max_mtu);
  r.active_mtu = static_cast<std::uint8_t>(a.active_mtu);
  r.max_vl_num = a.max_vl_num;
  r.active_width = a.active_width;
  r.active_speed = a.active_speed;
  r.phys_state = a.phys_state;
  r.link_layer = a.link_layer;
  r.flags = a.flags;
  io.respond(r);
  return 0;
}

int UverbsFile::create_comp_channel(Io& io) {
  auto channel = std::make_shared<EventFile>(kernel_.context(), kernel_.config(), EventFile::Kind::completion,
                                             kernel_.platform().host);
  const int fd = descriptors_.install(channel, false);
  if (fd < 0) return fd;
  std::erase_if(channels_, [](const auto& c) { return c.expired(); });
  channels_.push_back(channel);
  io.respond(ib_uverbs_create_comp_channel_resp{static_cast<std::uint32_t>(fd)});
  return 0;
}

long UverbsFile::map(std::size_t length, std::uint64_t offset) {
  if (!has_context_ || closed_) return -EINVAL;
  begin_use();
  long at = -EIO;
  if (device_ != nullptr)
    at = device_->ops.mmap != nullptr ? device_->ops.mmap(*ucontext_, length, offset) : -EOPNOTSUPP;
  if (closed_ && at > 0) {  // closed meanwhile
    user_.unmap_mmio({static_cast<std::uint64_t>(at)});
    at = -EIO;
  }
  end_use();
  return at;
}

}  // namespace kernel
