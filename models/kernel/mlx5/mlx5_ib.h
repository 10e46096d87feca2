// SPDX-License-Identifier: Apache-2.0
// mlx5_ib: the driver's callbacks for the RDMA core, by the file that has them. Their meaning is that of DeviceOps.
// Objects of kernel consumers (null Udata) have rings in kernel memory: QPs of type RC and UC, and CQs. What exists for programs
// only is refused with -EOPNOTSUPP.
#pragma once

#include <span>

#include "kernel/core/device.h"
#include "kernel/kernel.h"
#include "kernel/mlx5/mlx5_commands.h"
#include "kernel/mlx5/objects.h"

namespace kernel::mlx5_ib {

/// Installs the tables of operations in the driver's order: what depends on capabilities, the main table, the port's.
void set_device_ops(Device& device, const DeviceCaps& caps);

// main.cpp
int query_device(Device& device, DeviceAttr& attr, const Udata* udata);
int query_port(Device& device, std::uint32_t port, ibv_port_attr& attr);
int query_pkey(Device& device, std::uint32_t port, std::uint32_t index, std::uint16_t& pkey);
int add_gid(Device& device, std::uint32_t index, const GidEntry& entry);

// ucontext.cpp
int alloc_ucontext(Ucontext& context, const Udata* udata);
void dealloc_ucontext(Ucontext& context);
long mmap(Ucontext& context, std::size_t length, std::uint64_t offset);

// mr.cpp
int reg_user_mr(Mr& mr, const UserMrAttr& attr, const Udata* udata);
int rereg_user_mr(Mr& mr, int flags, const UserMrAttr& attr, Pd& pd, const Udata* udata);
int dereg_mr(Mr& mr);
int reg_phys_mr(Mr& mr, const DmaBuffer& buffer, std::uint64_t iova, std::uint64_t length, std::uint32_t access);
int get_dma_mr(Mr& mr, std::uint32_t access);
int alloc_mw(Mw& mw, const Udata* udata);
int dealloc_mw(Mw& mw);

// cq.cpp
int create_cq(Cq& cq, const CqInitAttr& attr, const Udata* udata);
int modify_cq(Cq& cq, std::uint16_t count, std::uint16_t period);
int resize_cq(Cq& cq, std::uint32_t cqe, const Udata* udata);
int destroy_cq(Cq& cq);

// srq.cpp
int create_srq(Srq& srq, const SrqInitAttr& attr, const Udata* udata);
int modify_srq(Srq& srq, const ibv_srq_attr& attr, std::uint32_t mask, const Udata* udata);
int query_srq(Srq& srq, ibv_srq_attr& attr);
int destroy_srq(Srq& srq);

// qp.cpp
int create_qp(Qp& qp, const QpInitAttr& attr, const Udata* udata);
int query_qp(Qp& qp, ibv_qp_attr& attr, ibv_qp_init_attr& init);
int destroy_qp(Qp& qp);
/// The context that describes the queue pair, as CREATE_QP takes it.
void build_qpc(const Mlx5Qp& qp, std::span<std::byte> qpc);
// qp_modify.cpp
int modify_qp(Qp& qp, const QpAttr& attr, std::uint32_t mask, const Udata* udata);

// small.cpp
int alloc_pd(Pd& pd, const Udata* udata);
int dealloc_pd(Pd& pd);
int create_ah(Ah& ah, const ibv_ah_attr& attr, const Udata* udata);
int destroy_ah(Ah& ah);
int attach_mcast(Qp& qp, const Gid& group);
int detach_mcast(Qp& qp, const Gid& group);
int alloc_xrcd(XrcDomain& domain, const Udata* udata);
int dealloc_xrcd(XrcDomain& domain);

// kernel_qp.cpp: rings of kernel consumers
int create_kernel_qp(Mlx5Qp& qp, const QpInitAttr& attr);
void free_kernel_qp(Mlx5Qp& qp);
/// The queue pair has been reset: its completions and indices go.
void reset_kernel_qp(Mlx5Qp& qp);
/// `params` has everything but what concerns the rings.
int create_kernel_cq(Mlx5Cq& cq, CqParams& params);
void free_kernel_cq(Mlx5Cq& cq);
/// Which workload the later WRs of a kernel consumer's queue pair belong to, for latency accounting.
void set_flow(Qp& qp, std::uint32_t flow);

// wr.cpp, poll_cq.cpp: data path of kernel consumers
int post_send(Qp& qp, const ibv_send_wr* wr, const ibv_send_wr** bad);
int post_recv(Qp& qp, const ibv_recv_wr* wr, const ibv_recv_wr** bad);
int poll_cq(Cq& cq, int num_entries, ibv_wc* wc);
int req_notify_cq(Cq& cq, std::uint32_t flags);
/// Removes the completions of a queue pair.
void clean_kernel_cq(Mlx5Cq& cq, std::uint32_t qpn);

// doorbell_record.cpp
/// The page of a doorbell record in user memory, pinned once for all records in it; `bus` is the record's DMA address.
int acquire_dbr(Mlx5Ucontext& context, std::uint64_t address, DbrPage*& page, std::uint64_t& bus);
void release_dbr(Mlx5Ucontext& context, DbrPage* page);

inline Mlx5Ucontext& context_of(const Object& o) { return static_cast<Mlx5Ucontext&>(*o.ucontext); }

}  // namespace kernel::mlx5_ib
