// SPDX-License-Identifier: Apache-2.0
// Commands about the opened device as a whole: GET_CONTEXT, QUERY_DEVICE, QUERY_PORT, completion channels, UAR mapping.
// UAR pages beyond the static ones are allocated by mmap (thread domains). No core clock page; user space does without.
// Source: mlx5_ib main.c (alloc_ucontext, query_device, mmap), ib_uverbs uverbs_cmd.c.
#include <algorithm>
#include <cerrno>

#include "hca/prm.h"
#include "kernel/mlx5/mlx5_commands.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

namespace prm = hca::prm;

namespace {
constexpr std::uint32_t kCacheLine = 64;
constexpr std::uint32_t kVendorId = 0x02c9;
constexpr std::uint32_t kMaxInlineDescriptor = 512;   // mlx5_ib counts SGEs in at most this much of a send WQE
constexpr std::uint64_t kTimestampMask = ~0ULL >> 1;  // of CQE time stamps
constexpr std::uint32_t kDynamicRegisters = 512;      // beyond the static ones
constexpr std::uint8_t kPortActive = 4, kPhysLinkUp = 5, kEthernet = 2;
constexpr std::uint8_t kWidth4x = 2, kSpeedEdr = 32;

// The page offset of an mmap of the device file: command in bits 15:8, page index in bits 7:0 and 23:16.
constexpr unsigned kMapCommandShift = 8;
}  // namespace

int UverbsFile::get_context(Io& io) {
  mlx5_ib_alloc_ucontext_req_v2 req{};
  const bool v1 = io.driver_in.size() == sizeof(mlx5_ib_alloc_ucontext_req);
  if (!v1 && io.driver_in.size() < offsetof(mlx5_ib_alloc_ucontext_req_v2, max_cqe_version)) return -EINVAL;
  std::memcpy(&req, io.driver_in.data(), std::min(io.driver_in.size(), sizeof req));
  if ((req.flags & ~static_cast<std::uint32_t>(MLX5_IB_ALLOC_UCTX_DEVX)) != 0 || req.comp_mask != 0 ||
      req.reserved0 != 0 || req.reserved1 != 0 || req.reserved2 != 0)
    return -EOPNOTSUPP;
  if (const int error = bfregs_.init(req.total_num_bfregs, req.num_low_latency_bfregs, !v1); error != 0) return error;
  int error = 0;
  for (std::uint32_t i = 0; error == 0 && i < bfregs_.pages(); ++i) {
    std::uint32_t uar = 0;
    error = alloc_uar(kernel_.commands(), uar);
    if (error == 0) uars_.push_back(uar);
  }
  if (error == 0 && kernel_.caps().dump_fill_mkey) error = query_null_key(kernel_.commands(), null_key_);
  async_ =
      std::make_shared<EventFile>(kernel_.context(), kernel_.config(), EventFile::Kind::async, kernel_.platform().host);
  const int fd = error == 0 ? descriptors_.install(async_, true) : error;
  if (fd < 0) {
    release_uars();
    async_ = nullptr;
    return fd == -EAGAIN ? -ENOMEM : fd;
  }

  const DeviceCaps& caps = kernel_.caps();
  cqe_version_ = static_cast<std::uint8_t>(std::min<std::uint32_t>(req.max_cqe_version, caps.cqe_version));
  mlx5_ib_alloc_ucontext_resp resp{};
  resp.qp_tab_size = 1U << caps.log_max_qp;
  resp.bf_reg_size = caps.blue_flame ? 1U << caps.log_bf_reg_size : 0;
  resp.tot_bfregs = bfregs_.total();
  resp.cache_line_size = kCacheLine;
  resp.max_sq_desc_sz = static_cast<std::uint16_t>(caps.max_wqe_sz_sq);
  resp.max_rq_desc_sz = static_cast<std::uint16_t>(caps.max_wqe_sz_rq);
  resp.max_send_wqebb = 1U << caps.log_max_qp_sz;
  resp.max_recv_wr = 1U << caps.log_max_qp_sz;
  resp.max_srq_recv_wr = (1U << caps.log_max_srq_sz) - 1;
  resp.num_ports = static_cast<std::uint16_t>(caps.num_ports);
  resp.response_length = static_cast<std::uint32_t>(std::min(sizeof resp, io.driver_out.size()));
  resp.cqe_version = cqe_version_;
  resp.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
  if (null_key_ != 0) {
    resp.comp_mask |= MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_DUMP_FILL_MKEY;
    resp.dump_fill_mkey = null_key_;
  }
  resp.log_uar_size = memory::kPageShift;
  resp.num_uars_per_page = 1;
  resp.num_dyn_bfregs = kDynamicRegisters;
  io.respond(ib_uverbs_get_context_resp{static_cast<std::uint32_t>(fd), kernel_.comp_vectors()});
  io.driver_respond(resp);
  kernel_.add_context(async_.get());
  has_context_ = true;
  context_number_ = kernel_.next_context_number();
  return 0;
}

void UverbsFile::release_uars() {
  for (const std::uint32_t uar : uars_)
    if (dealloc_uar(kernel_.commands(), uar) != 0) kernel_.counter("uar_release_failures").add();
  for (const auto& [page, uar] : dynamic_uars_)
    if (dealloc_uar(kernel_.commands(), uar) != 0) kernel_.counter("uar_release_failures").add();
  uars_.clear();
  dynamic_uars_.clear();
}

ib_uverbs_query_device_resp UverbsFile::device_attributes() const {
  const DeviceCaps& caps = kernel_.caps();
  ib_uverbs_query_device_resp r{};
  r.fw_ver = std::uint64_t{caps.fw_major} << 32 | std::uint64_t{caps.fw_minor} << 16 | caps.fw_sub;
  r.node_guid = prm::be64(caps.node_guid);
  r.sys_image_guid = r.node_guid;
  r.max_mr_size = ~0ULL;
  r.page_size_cap = ~(memory::kPageSize - 1);
  r.vendor_id = kVendorId;
  r.vendor_part_id = caps.vendor_part_id;
  r.max_qp = 1U << caps.log_max_qp;
  r.max_qp_wr = 1U << caps.log_max_qp_sz;
  r.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
                       IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
                       IBV_DEVICE_MEM_MGT_EXTENSIONS;
  // Control, and the larger of the address and data part of an RDMA operation, come off the descriptor. (S-OBJ-46)
  r.max_sge = (std::min(caps.max_wqe_sz_sq, kMaxInlineDescriptor) - 32) / 16;
  r.max_sge_rd = r.max_sge;
  r.max_cq = 1U << caps.log_max_cq;
  r.max_cqe = (1U << caps.log_max_cq_sz) - 1;
  r.max_mr = 1U << caps.log_max_mkey;
  r.max_mw = 1U << caps.log_max_mkey;
  r.max_pd = 1U << caps.log_max_pd;
  r.max_srq = 1U << caps.log_max_srq;
  r.max_srq_wr = (1U << caps.log_max_srq_sz) - 1;
  r.max_srq_sge = caps.max_wqe_sz_rq / 16 - 1;  // one goes to the link
  if (caps.log_max_xrcd != 0) r.device_cap_flags |= IBV_DEVICE_XRC;
  r.max_qp_rd_atom = 1U << caps.log_max_ra_res;
  r.max_qp_init_rd_atom = 1U << caps.log_max_ra_req;
  r.max_res_rd_atom = r.max_qp_rd_atom * r.max_qp;
  r.atomic_cap = caps.atomic ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
  r.max_mcast_grp = 1U << caps.log_max_mcg;
  r.max_mcast_qp_attach = caps.max_qp_mcg;
  r.max_total_mcast_qp_attach = r.max_mcast_grp * r.max_mcast_qp_attach;
  r.max_ah = 0x7fffffff;
  r.max_pkeys = static_cast<std::uint16_t>(kernel_.config().netdev.pkey_table_length);
  r.local_ca_ack_delay = 16;
  r.phys_port_cnt = static_cast<std::uint8_t>(caps.num_ports);
  return r;
}

int UverbsFile::query_device(Io& io) {
  io.respond(device_attributes());
  return 0;
}

int UverbsFile::query_device_ex(Io& io) {
  const auto cmd = io.request<ib_uverbs_ex_query_device>();
  if (cmd.comp_mask != 0 || cmd.reserved != 0) return -EINVAL;
  ib_uverbs_ex_query_device_resp r{};
  r.base = device_attributes();
  r.response_length = static_cast<std::uint32_t>(std::min(sizeof r, io.out_size));
  r.device_cap_flags_ex = r.base.device_cap_flags;
  r.timestamp_mask = kTimestampMask;
  r.hca_core_clock = kernel_.caps().frequency_khz;
  if (kernel_.caps().moderation) {
    r.cq_moderation_caps.max_cq_moderation_count = 0xffff;
    r.cq_moderation_caps.max_cq_moderation_period = 0xfff;
  }
  io.respond(r);
  return 0;
}

int UverbsFile::query_port(Io& io) {
  const auto cmd = io.request<ib_uverbs_query_port>();
  const DeviceCaps& caps = kernel_.caps();
  if (cmd.port_num == 0 || cmd.port_num > caps.num_ports) return -EINVAL;
  ib_uverbs_query_port_resp r{};
  r.port_cap_flags = IBV_PORT_CM_SUP;
  r.max_msg_sz = 1U << caps.log_max_msg;
  r.gid_tbl_len = static_cast<std::uint32_t>(kernel_.gids().length());
  r.pkey_tbl_len = static_cast<std::uint16_t>(kernel_.config().netdev.pkey_table_length);
  r.state = kPortActive;
  r.max_mtu = static_cast<std::uint8_t>(caps.max_port_mtu);
  r.active_mtu = kernel_.active_mtu();
  r.max_vl_num = 1;
  r.active_width = kWidth4x;
  r.active_speed = kSpeedEdr;
  r.phys_state = kPhysLinkUp;
  r.link_layer = kEthernet;
  r.flags = IB_UVERBS_QPF_GRH_REQUIRED;
  io.respond(r);
  return 0;
}

int UverbsFile::create_comp_channel(Io& io) {
  auto channel = std::make_shared<EventFile>(kernel_.context(), kernel_.config(), EventFile::Kind::completion,
                                             kernel_.platform().host);
  const int fd = descriptors_.install(std::move(channel), false);
  if (fd < 0) return fd;
  io.respond(ib_uverbs_create_comp_channel_resp{static_cast<std::uint32_t>(fd)});
  return 0;
}

// A page of registers of its own, for a thread domain; it lives as long as the file.
long UverbsFile::map_dynamic(std::size_t length, std::uint64_t index) {
  const auto page = static_cast<std::uint32_t>(index);
  if (length != memory::kPageSize || index >= kDynamicRegisters / 2) return -EINVAL;
  if (!dynamic_uars_.emplace(page, 0).second) return -EINVAL;
  std::uint32_t uar = 0;
  ++active_;  // a close meanwhile waits for this call
  const int error = alloc_uar(kernel_.commands(), uar);
  if (error != 0) dynamic_uars_.erase(page);
  else dynamic_uars_[page] = uar;
  if (--active_ == 0 && closed_) {
    release_all();
    return -EIO;
  }
  if (error != 0) return error == -EAGAIN ? -ENOMEM : error;
  charge(kernel_.config().syscall.map_page);
  return static_cast<long>(user_
                               .map_mmio(kernel_.platform().bar0 + std::uint64_t{uar} * prm::kUarPageSize,
                                         memory::kPageSize, memory::MemoryType::write_combining)
                               .v);
}

long UverbsFile::map(std::size_t length, std::uint64_t offset) {
  if (!has_context_ || offset % memory::kPageSize != 0) return -EINVAL;
  const std::uint64_t page = offset >> memory::kPageShift;
  const auto command = static_cast<unsigned>(page >> kMapCommandShift & 0xff);
  const std::uint64_t index = (page & 0xff) | (page >> 16 & 0xff) << 8;
  memory::MemoryType type{};
  switch (command) {
    case MLX5_IB_MMAP_REGULAR_PAGE:
    case MLX5_IB_MMAP_WC_PAGE:
      type = memory::MemoryType::write_combining;
      break;
    case MLX5_IB_MMAP_NC_PAGE:
      type = memory::MemoryType::uncached;
      break;
    case MLX5_IB_MMAP_ALLOC_WC:
      return map_dynamic(length, index);
    case MLX5_IB_MMAP_CORE_CLOCK:
    case MLX5_IB_MMAP_CLOCK_INFO:
      return -EOPNOTSUPP;
    default:
      return -EINVAL;
  }
  if (length != memory::kPageSize || index >= uars_.size()) return -EINVAL;
  charge(kernel_.config().syscall.map_page);
  const memory::Phys bus = kernel_.platform().bar0 + std::uint64_t{uars_[index]} * prm::kUarPageSize;
  return static_cast<long>(user_.map_mmio(bus, memory::kPageSize, type).v);
}

}  // namespace kernel
