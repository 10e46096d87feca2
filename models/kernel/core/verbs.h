// SPDX-License-Identifier: Apache-2.0
// Verbs of the RDMA core, for uverbs (with the driver's parts of the command as `udata`) and for kernel consumers (without).
// The core initialises the object, lets the driver make it, counts the use of its parents (S-OBJ-20) and tracks it.
// Functions return 0 or -errno and block the calling thread; a refused call changes nothing (S-OBJ-22).
// -EOPNOTSUPP: the driver lacks the callback. Destroying leaves the memory of the object to the caller.
#pragma once

#include <memory>
#include <span>

#include "kernel/core/device.h"
#include "kernel/core/objects.h"
#include "kernel/core/udata.h"

namespace kernel {

int ib_alloc_pd(Device& device, const Consumer& who, const Udata* udata, std::unique_ptr<Pd>& pd);
/// A kernel consumer's PD, with its keys for DMA addresses. `flags`: IB_PD_UNSAFE_GLOBAL_RKEY or 0.
constexpr std::uint32_t IB_PD_UNSAFE_GLOBAL_RKEY = 1;
int ib_alloc_kernel_pd(Device& device, std::uint32_t flags, const Consumer& who, std::unique_ptr<Pd>& pd);
/// -EBUSY: objects refer to it.
int ib_dealloc_pd(Pd& pd);

int ib_reg_user_mr(Pd& pd, const UserMrAttr& attr, const Consumer& who, const Udata* udata, std::unique_ptr<Mr>& mr);
/// `flags`: enum ibv_rereg_mr_flags; `pd` is the new one, or the old.
int ib_rereg_user_mr(Mr& mr, int flags, const UserMrAttr& attr, Pd& pd, const Udata* udata);
/// A region of a kernel consumer's memory, named from `iova` on, which has the same place in its page as the buffer. The verb is
/// that of Linux until 4.4; it stands for a fast registration, which takes a work request.
int ib_reg_phys_mr(Pd& pd, const DmaBuffer& buffer, std::uint64_t iova, std::uint64_t length, std::uint32_t access,
                   const Consumer& who, std::unique_ptr<Mr>& mr);
int ib_dereg_mr(Mr& mr);

int ib_alloc_mw(Pd& pd, ibv_mw_type type, const Consumer& who, const Udata* udata, std::unique_ptr<Mw>& mw);
int ib_dealloc_mw(Mw& mw);

/// `attr.cqe` is the least number of entries; the CQ has `cqe`. The handlers are set once it exists.
int ib_create_cq(Device& device, const CqInitAttr& attr, const Consumer& who, const Udata* udata,
                 std::unique_ptr<Cq>& cq);
int ib_modify_cq(Cq& cq, std::uint16_t count, std::uint16_t period);
int ib_resize_cq(Cq& cq, std::uint32_t cqe, const Udata* udata);
/// -EBUSY: queue pairs or SRQs refer to it.
int ib_destroy_cq(Cq& cq);

int ib_create_srq(Pd& pd, const SrqInitAttr& attr, const Consumer& who, const Udata* udata, std::unique_ptr<Srq>& srq);
int ib_modify_srq(Srq& srq, const ibv_srq_attr& attr, std::uint32_t mask, const Udata* udata);
int ib_query_srq(Srq& srq, ibv_srq_attr& attr);
int ib_destroy_srq(Srq& srq);

/// A queue pair of any type but XRC_RECV. The same CQ for sends and receives counts twice.
int ib_create_qp(Pd& pd, const QpInitAttr& attr, const Consumer& who, const Udata* udata, std::unique_ptr<Qp>& qp);
/// Resolves the address vector, then lets the driver check and run the transition.
int ib_modify_qp(Qp& qp, const ibv_qp_attr& attr, std::uint32_t mask, const Udata* udata);
int ib_query_qp(Qp& qp, ibv_qp_attr& attr, ibv_qp_init_attr& init);
/// -EBUSY: it is a member of multicast groups.
int ib_destroy_qp(Qp& qp);

/// An XRC target QP of the domain of `xrcd`, and the first handle of it.
int ib_create_xrc_target(Xrcd& xrcd, const QpInitAttr& attr, const Consumer& who, const Udata* udata,
                         std::unique_ptr<Qp>& handle);
/// A further handle of a target QP of the domain. -EINVAL: there is none of that number.
int ib_open_qp(Xrcd& xrcd, std::uint32_t qpn, const Consumer& who, std::unique_ptr<Qp>& handle);

/// -EINVAL: the source GID does not exist; -ETIMEDOUT: nobody answers for the destination.
int ib_create_ah(Pd& pd, const ibv_ah_attr& attr, const Consumer& who, const Udata* udata, std::unique_ptr<Ah>& ah);
int ib_destroy_ah(Ah& ah);

/// Attaching twice is the same as once.
int ib_attach_mcast(Qp& qp, const Gid& group);
int ib_detach_mcast(Qp& qp, const Gid& group);

/// Makes the domain on the device.
int ib_alloc_xrcd(XrcDomain& domain, const Udata* udata);
int ib_dealloc_xrcd(XrcDomain& domain);

// Data path of kernel consumers. The structs are those of user verbs; addresses in data segments are DMA addresses, those of
// inline data kernel addresses. QPs and CQs are those of kernel consumers.
inline int ib_post_send(Qp& qp, const ibv_send_wr* wr, const ibv_send_wr** bad) {
  return qp.device->ops.post_send(qp, wr, bad);
}
inline int ib_post_recv(Qp& qp, const ibv_recv_wr* wr, const ibv_recv_wr** bad) {
  return qp.device->ops.post_recv(qp, wr, bad);
}
inline int ib_poll_cq(Cq& cq, int num_entries, ibv_wc* wc) { return cq.device->ops.poll_cq(cq, num_entries, wc); }
enum IbCqNotifyFlags : std::uint32_t {
  IB_CQ_SOLICITED = 1,
  IB_CQ_NEXT_COMP = 2,
  IB_CQ_SOLICITED_MASK = 3,
  IB_CQ_REPORT_MISSED_EVENTS = 4,
};
/// Arms the CQ. 1: IB_CQ_REPORT_MISSED_EVENTS was given and completions wait that no event may announce (S-CE-20).
inline int ib_req_notify_cq(Cq& cq, std::uint32_t flags) { return cq.device->ops.req_notify_cq(cq, flags); }

/// Any of the destroy functions, by the object's type. XRC domains are their file's business.
int ib_destroy(Object& object);

}  // namespace kernel
