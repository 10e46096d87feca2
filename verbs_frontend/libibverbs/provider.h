// SPDX-License-Identifier: Apache-2.0
// Between the library and a provider: the private operation table (reached through verbs_context::priv), the common part
// of a context, and the common parts of CQs and QPs.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/thread.h"
#include "kernel/syscalls.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_query_port

namespace verbs {

/// Operations behind the exported functions. Those that programs reach through struct ibv_context_ops or
/// verbs_context are set there. A provider overrides what it has; the rest stays at the library's dummy operations.
struct ProviderOps {
  int (*query_device)(ibv_context*, ibv_device_attr*);
  int (*query_port)(ibv_context*, std::uint8_t port, ibv_port_attr*);
  ibv_pd* (*alloc_pd)(ibv_context*);
  int (*dealloc_pd)(ibv_pd*);
  ibv_mr* (*reg_mr)(ibv_pd*, void* addr, std::size_t length, std::uint64_t iova, int access);
  int (*rereg_mr)(ibv_mr*, int flags, ibv_pd*, void* addr, std::size_t length, int access);
  int (*dereg_mr)(ibv_mr*);
  ibv_cq* (*create_cq)(ibv_context*, int cqe, ibv_comp_channel*, int vector);
  ibv_cq_ex* (*create_cq_ex)(ibv_context*, ibv_cq_init_attr_ex*);
  int (*resize_cq)(ibv_cq*, int cqe);
  int (*destroy_cq)(ibv_cq*);
  void (*cq_event)(ibv_cq*);
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  ibv_qp* (*create_qp_ex)(ibv_context*, ibv_qp_init_attr_ex*);
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int mask);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
  int (*destroy_qp)(ibv_qp*);
  ibv_ah* (*create_ah)(ibv_pd*, ibv_ah_attr*);
  int (*destroy_ah)(ibv_ah*);
  ibv_srq* (*create_srq)(ibv_pd*, ibv_srq_init_attr*);
  int (*modify_srq)(ibv_srq*, ibv_srq_attr*, int mask);
  int (*query_srq)(ibv_srq*, ibv_srq_attr*);
  int (*destroy_srq)(ibv_srq*);
  int (*attach_mcast)(ibv_qp*, const ibv_gid*, std::uint16_t lid);
  int (*detach_mcast)(ibv_qp*, const ibv_gid*, std::uint16_t lid);
  void (*close)(ibv_context*);
};

/// Operations that refuse: EOPNOTSUPP (S-DEV-3).
extern const ProviderOps kDummyOps;
/// The same for the tables that header inlines use.
void fill_dummy_ops(verbs_context& c);

/// A device of the list. ibv_device first.
struct Device {
  ibv_device dev;
  std::string uverbs;  ///< "uverbs0"
  const struct Provider* provider = nullptr;
};

/// Common part of an open device. verbs_context first; programs hold &vctx.context.
struct Context {
  verbs_context vctx;
  const ProviderOps* ops;
  Device* device;
  kernel::Syscalls* syscalls;
};
inline Context& context_of(ibv_context* c) {
  return *reinterpret_cast<Context*>(reinterpret_cast<std::byte*>(c) - offsetof(verbs_context, context));
}
inline const ProviderOps& ops_of(ibv_context* c) { return *context_of(c).ops; }

struct Provider {
  const char* name;
  /// Whether the device with this modalias ("pci:v000015B3d…") is this provider's.
  bool (*matches)(std::string_view modalias);
  /// Opens cmd_fd's device: sends GET_CONTEXT and returns the context, or nullptr with errno. ops, device, syscalls,
  /// vctx.priv and the dummy operations are set by the library through `prepare` before the provider adds its own.
  Context* (*alloc_context)(Device& device, kernel::Syscalls& syscalls, int cmd_fd);
};
/// Fills the library's part of a fresh context.
void prepare_context(Context& c, Device& device, kernel::Syscalls& syscalls, int cmd_fd, const ProviderOps& ops);

/// Threads that wait until every event of an object is acknowledged (S-CE-30).
struct AckWaiters {
  std::vector<cpu::Thread*> threads;
};

struct CqBase {
  ibv_cq_ex cq_ex;  // first; ibv_cq is its prefix
  AckWaiters ack_waiters;
};
struct SrqBase {
  ibv_srq srq;  // first
  AckWaiters ack_waiters;
};
struct QpBase {
  ibv_qp_ex qp_ex;  // first; ibv_qp is its prefix
  AckWaiters ack_waiters;
  bool extended = false;  ///< created with send_ops_flags
};

/// Blocks until `completed` has reached `reported`.
void wait_for_acks(AckWaiters& w, const std::uint32_t& completed, std::uint32_t reported, const char* why);
void wake_ack_waiters(AckWaiters& w);

/// Sets errno and returns nullptr, for functions that return a pointer.
std::nullptr_t fail(int error);

// Kernel commands, one per function; 0 or a positive errno.
int cmd_query_device(ibv_context* c, ibv_device_attr& out);
/// The kernel's answer as the program sees it.
void fill_device_attr(const ib_uverbs_query_device_resp& r, ibv_device_attr& out);
int cmd_query_port(ibv_context* c, std::uint8_t port, ibv_port_attr& out);
int cmd_dealloc_pd(ibv_pd* pd);
int cmd_reg_mr(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, int access, ibv_mr& mr);
int cmd_rereg_mr(ibv_mr& mr, int flags, ibv_pd* pd, void* addr, std::size_t length, int access);
int cmd_dereg_mr(ibv_mr* mr);
int cmd_alloc_mw(ibv_pd* pd, ibv_mw_type type, ibv_mw& mw);
int cmd_dealloc_mw(ibv_mw* mw);
int cmd_modify_cq(ibv_cq* cq, const ibv_modify_cq_attr& attr);
int cmd_destroy_cq(ibv_cq* cq);
int cmd_modify_qp(ibv_qp* qp, const ibv_qp_attr& attr, int mask);
int cmd_query_qp(ibv_qp* qp, ibv_qp_attr& attr, int mask, ibv_qp_init_attr& init);
int cmd_destroy_qp(ibv_qp* qp);
int cmd_modify_srq(ibv_srq* srq, const ibv_srq_attr& attr, int mask);
int cmd_query_srq(ibv_srq* srq, ibv_srq_attr& attr);
int cmd_destroy_srq(ibv_srq* srq);
int cmd_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid);
int cmd_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid);

}  // namespace verbs

/// What verbs_context::priv points to.
struct verbs_ex_private {
  const verbs::ProviderOps* ops;
};
