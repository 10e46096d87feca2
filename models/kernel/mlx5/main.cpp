// SPDX-License-Identifier: Apache-2.0
// The driver's tables of operations, in the order in which it installs them, and what it says about the device and its
// port. Source: mlx5_ib main.c (mlx5_ib_stage_caps_init, mlx5_ib_query_device, mlx5_query_port_roce).
#include <algorithm>
#include <cerrno>

#include "hca/prm.h"
#include "kernel/mlx5/mlx5_ib.h"

namespace kernel::mlx5_ib {

namespace prm = hca::prm;

namespace {

constexpr std::uint32_t kVendorId = 0x02c9;
constexpr std::uint32_t kMaxInlineDescriptor = 512;   // SGEs are counted in at most this much of a send WQE
constexpr std::uint64_t kTimestampMask = ~0ULL >> 1;  // of CQE time stamps
constexpr std::uint8_t kPhysLinkUp = 5, kPhysDisabled = 3, kWidth4x = 2, kSpeedEdr = 32;
constexpr std::uint8_t kGrhRequired = 1;  // IB_UVERBS_QPF_GRH_REQUIRED

template <class Core, class Mlx5>
std::unique_ptr<Core> make() {
  return std::make_unique<Mlx5>();
}

DeviceOps mw_ops() {
  DeviceOps t;
  t.make_mw = &make<Mw, Mw>;
  t.alloc_mw = &alloc_mw;
  t.dealloc_mw = &dealloc_mw;
  return t;
}

DeviceOps xrc_ops() {
  DeviceOps t;
  t.alloc_xrcd = &alloc_xrcd;
  t.dealloc_xrcd = &dealloc_xrcd;
  return t;
}

DeviceOps main_ops() {
  DeviceOps t;
  t.query_device = &query_device;
  t.query_pkey = &query_pkey;
  t.make_ucontext = &make<Ucontext, Mlx5Ucontext>;
  t.alloc_ucontext = &alloc_ucontext;
  t.dealloc_ucontext = &dealloc_ucontext;
  t.mmap = &mmap;
  t.make_pd = &make<Pd, Pd>;
  t.alloc_pd = &alloc_pd;
  t.dealloc_pd = &dealloc_pd;
  t.make_mr = &make<Mr, Mlx5Mr>;
  t.reg_user_mr = &reg_user_mr;
  t.rereg_user_mr = &rereg_user_mr;
  t.dereg_mr = &dereg_mr;
  t.reg_phys_mr = &reg_phys_mr;
  t.get_dma_mr = &get_dma_mr;
  t.make_cq = &make<Cq, Mlx5Cq>;
  t.create_cq = &create_cq;
  t.modify_cq = &modify_cq;
  t.resize_cq = &resize_cq;
  t.destroy_cq = &destroy_cq;
  t.make_srq = &make<Srq, Mlx5Srq>;
  t.create_srq = &create_srq;
  t.modify_srq = &modify_srq;
  t.query_srq = &query_srq;
  t.destroy_srq = &destroy_srq;
  t.make_qp = &make<Qp, Mlx5Qp>;
  t.create_qp = &create_qp;
  t.modify_qp = &modify_qp;
  t.query_qp = &query_qp;
  t.destroy_qp = &destroy_qp;
  t.make_ah = &make<Ah, Ah>;
  t.create_ah = &create_ah;
  t.destroy_ah = &destroy_ah;
  t.post_send = &post_send;
  t.post_recv = &post_recv;
  t.poll_cq = &poll_cq;
  t.req_notify_cq = &req_notify_cq;
  t.attach_mcast = &attach_mcast;
  t.detach_mcast = &detach_mcast;
  return t;
}

DeviceOps port_ops() {
  DeviceOps t;
  t.add_gid = &add_gid;
  t.query_port = &query_port;
  return t;
}

}  // namespace

void set_device_ops(Device& device, const DeviceCaps& caps) {
  device.set_ops(mw_ops());
  if (caps.log_max_xrcd != 0) device.set_ops(xrc_ops());
  device.set_ops(main_ops());
  device.set_ops(port_ops());
}

int query_device(Device& device, DeviceAttr& attr, const Udata* /*udata*/) {
  const DeviceCaps& caps = device.kernel.caps();
  const auto power = [](std::uint32_t log) { return static_cast<int>(std::uint32_t{1} << log); };
  const auto product = [](int a, int b) {
    return static_cast<int>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
  };
  ibv_device_attr& r = attr.ex.orig_attr;
  attr.fw_ver = std::uint64_t{caps.fw_major} << 32 | std::uint64_t{caps.fw_minor} << 16 | caps.fw_sub;
  r.node_guid = prm::be64(caps.node_guid);
  r.sys_image_guid = r.node_guid;
  r.max_mr_size = ~0ULL;
  r.page_size_cap = ~(memory::kPageSize - 1);
  r.vendor_id = kVendorId;
  r.vendor_part_id = caps.vendor_part_id;
  r.max_qp = power(caps.log_max_qp);
  r.max_qp_wr = power(caps.log_max_qp_sz);
  r.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
                       IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
                       IBV_DEVICE_MEM_MGT_EXTENSIONS;
  // Control, and the larger of the address and data part of an RDMA operation, come off the descriptor. (S-OBJ-46)
  r.max_sge = static_cast<int>((std::min(caps.max_wqe_sz_sq, kMaxInlineDescriptor) - 32) / 16);
  r.max_sge_rd = r.max_sge;
  r.max_cq = power(caps.log_max_cq);
  r.max_cqe = power(caps.log_max_cq_sz) - 1;
  r.max_mr = power(caps.log_max_mkey);
  r.max_mw = power(caps.log_max_mkey);
  r.max_pd = power(caps.log_max_pd);
  r.max_srq = power(caps.log_max_srq);
  r.max_srq_wr = power(caps.log_max_srq_sz) - 1;
  r.max_srq_sge = static_cast<int>(caps.max_wqe_sz_rq / 16) - 1;  // one goes to the link
  if (caps.log_max_xrcd != 0) r.device_cap_flags |= IBV_DEVICE_XRC;
  r.max_qp_rd_atom = power(caps.log_max_ra_res);
  r.max_qp_init_rd_atom = power(caps.log_max_ra_req);
  r.max_res_rd_atom = product(r.max_qp_rd_atom, r.max_qp);
  r.atomic_cap = caps.atomic ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
  r.max_mcast_grp = power(caps.log_max_mcg);
  r.max_mcast_qp_attach = static_cast<int>(caps.max_qp_mcg);
  r.max_total_mcast_qp_attach = product(r.max_mcast_grp, r.max_mcast_qp_attach);
  r.max_ah = 0x7fffffff;
  r.max_pkeys = static_cast<std::uint16_t>(device.kernel.config().netdev.pkey_table_length);
  r.local_ca_ack_delay = 16;
  r.phys_port_cnt = static_cast<std::uint8_t>(caps.num_ports);
  attr.ex.device_cap_flags_ex = r.device_cap_flags;
  attr.ex.completion_timestamp_mask = kTimestampMask;
  attr.ex.hca_core_clock = caps.frequency_khz;
  if (caps.moderation) attr.ex.cq_mod_caps = {0xffff, 0xfff};
  return 0;
}

int query_port(Device& device, std::uint32_t port, ibv_port_attr& r) {
  const DeviceCaps& caps = device.kernel.caps();
  if (port == 0 || port > caps.num_ports) return -EINVAL;
  r.port_cap_flags = IBV_PORT_CM_SUP;
  r.max_msg_sz = 1U << caps.log_max_msg;
  r.gid_tbl_len = static_cast<int>(device.gids.length());
  r.pkey_tbl_len = static_cast<std::uint16_t>(device.kernel.config().netdev.pkey_table_length);
  const bool up = device.kernel.carrier();
  r.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  r.max_mtu = static_cast<ibv_mtu>(caps.max_port_mtu);
  r.active_mtu = static_cast<ibv_mtu>(device.kernel.active_mtu());
  r.max_vl_num = 1;
  r.active_width = kWidth4x;
  r.active_speed = kSpeedEdr;
  r.phys_state = up ? kPhysLinkUp : kPhysDisabled;
  r.link_layer = IBV_LINK_LAYER_ETHERNET;
  r.flags = kGrhRequired;
  return 0;
}

int query_pkey(Device& device, std::uint32_t /*port*/, std::uint32_t index, std::uint16_t& pkey) {
  if (index >= device.kernel.config().netdev.pkey_table_length) return -EINVAL;
  pkey = 0xffff;
  return 0;
}

int add_gid(Device& device, std::uint32_t index, const GidEntry& e) {
  Kernel& kernel = device.kernel;
  const DeviceCaps& caps = kernel.caps();
  Command c(prm::kSetRoceAddress, prm::kRoceAddressEnd, 16);
  c.set(prm::kRoceAddressIndex, index);
  std::memcpy(c.in.data() + prm::kRoceAddressGid, e.gid.data(), e.gid.size());
  c.set(prm::kRoceAddressMacHigh, static_cast<std::uint32_t>(caps.mac >> 32));
  c.set(prm::kRoceAddressMacLow, static_cast<std::uint32_t>(caps.mac));
  c.set(prm::kRoceAddressL3Type, is_ipv4(e.gid) ? prm::kRoceL3Ipv4 : prm::kRoceL3Ipv6);
  c.set(prm::kRoceAddressVersion, e.type == GidType::roce_v1 ? prm::kRoceVersion1 : prm::kRoceVersion2);
  const int error = kernel.commands().execute(c);
  if (c.status != prm::kCmdBadOp) return error;
  kernel.counter("roce_address_refused").add();  // a device whose addresses are fixed
  return -EOPNOTSUPP;
}

}  // namespace kernel::mlx5_ib
