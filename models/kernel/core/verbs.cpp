// SPDX-License-Identifier: Apache-2.0
// Creation and destruction of the core's objects. A count goes up when the driver has made the object and down when it has
// destroyed it. Source: ib_core verbs.c, core_priv.h (ib_qp_usecnt_inc), rules S-OBJ-20 … S-OBJ-22.
#include "kernel/core/verbs.h"

#include <algorithm>
#include <cerrno>

#include "kernel/kernel.h"

namespace kernel {

namespace {

/// A blank object of the driver. Null if the device has no such objects.
template <class T>
std::unique_ptr<T> blank(Device& device, std::unique_ptr<T> (*make)(), const Consumer& who) {
  if (make == nullptr) return nullptr;
  auto object = make();
  object->device = &device;
  object->ucontext = who.ucontext;
  object->owner = who.owner;
  return object;
}

/// What every creation of the driver answers: a table that is full is lack of memory.
int created(int error) { return error == -EAGAIN ? -ENOMEM : error; }

int gone(Object& object) {
  object.device->untrack(object);
  return 0;
}

}  // namespace

// PD ----------------------------------------------------------------------------------------------------------------------

int ib_alloc_pd(Device& device, const Consumer& who, const Udata* udata, std::unique_ptr<Pd>& pd) {
  auto made = blank(device, device.ops.make_pd, who);
  if (const int error = device.ops.alloc_pd(*made, udata); error != 0) return error;
  device.track(*made);
  pd = std::move(made);
  return 0;
}

int ib_alloc_kernel_pd(Device& device, std::uint32_t flags, const Consumer& who, std::unique_ptr<Pd>& pd) {
  std::unique_ptr<Pd> made;
  if (const int error = ib_alloc_pd(device, who, nullptr, made); error != 0) return error;
  const bool global = (flags & IB_PD_UNSAFE_GLOBAL_RKEY) != 0;
  const std::uint32_t remote = global ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE : 0U;
  std::shared_ptr<Mr> mr = blank(device, device.ops.make_mr, who);
  mr->pd = made.get();
  if (const int error = device.ops.get_dma_mr(*mr, IBV_ACCESS_LOCAL_WRITE | remote); error != 0) {
    ib_dealloc_pd(*made);
    return created(error);
  }
  made->local_dma_lkey = mr->key;
  if (global) made->unsafe_global_rkey = mr->key;
  made->internal_mr = std::move(mr);
  pd = std::move(made);
  return 0;
}

int ib_dealloc_pd(Pd& pd) {
  if (pd.usecnt != 0) return -EBUSY;
  if (pd.internal_mr != nullptr) {
    if (const int error = pd.device->ops.dereg_mr(*pd.internal_mr); error != 0) return error;
    pd.internal_mr.reset();
  }
  if (const int error = pd.device->ops.dealloc_pd(pd); error != 0) return error;
  return gone(pd);
}

// Memory ------------------------------------------------------------------------------------------------------------------

int ib_reg_user_mr(Pd& pd, const UserMrAttr& attr, const Consumer& who, const Udata* udata, std::unique_ptr<Mr>& mr) {
  Device& device = *pd.device;
  if (device.ops.reg_user_mr == nullptr) return -EOPNOTSUPP;
  auto made = blank(device, device.ops.make_mr, who);
  made->pd = &pd;
  if (const int error = device.ops.reg_user_mr(*made, attr, udata); error != 0) return created(error);
  ++pd.usecnt;
  device.track(*made);
  mr = std::move(made);
  return 0;
}

int ib_rereg_user_mr(Mr& mr, int flags, const UserMrAttr& attr, Pd& pd, const Udata* udata) {
  const DeviceOps& ops = mr.device->ops;
  if (ops.rereg_user_mr == nullptr) return -EOPNOTSUPP;
  if (const int error = ops.rereg_user_mr(mr, flags, attr, pd, udata); error != 0) return created(error);
  --mr.pd->usecnt;
  ++pd.usecnt;
  mr.pd = &pd;
  return 0;
}

int ib_reg_phys_mr(Pd& pd, const DmaBuffer& buffer, std::uint64_t iova, std::uint64_t length, std::uint32_t access,
                   const Consumer& who, std::unique_ptr<Mr>& mr) {
  Device& device = *pd.device;
  if (device.ops.reg_phys_mr == nullptr) return -EOPNOTSUPP;
  if (length == 0 || length > buffer.size || iova % memory::kPageSize != 0) return -EINVAL;
  auto made = blank(device, device.ops.make_mr, who);
  made->pd = &pd;
  if (const int error = device.ops.reg_phys_mr(*made, buffer, iova, length, access); error != 0) return created(error);
  ++pd.usecnt;
  device.track(*made);
  mr = std::move(made);
  return 0;
}

int ib_dereg_mr(Mr& mr) {
  Pd& pd = *mr.pd;
  if (const int error = mr.device->ops.dereg_mr(mr); error != 0) return error;
  --pd.usecnt;
  return gone(mr);
}

int ib_alloc_mw(Pd& pd, ibv_mw_type type, const Consumer& who, const Udata* udata, std::unique_ptr<Mw>& mw) {
  Device& device = *pd.device;
  if (device.ops.alloc_mw == nullptr) return -EOPNOTSUPP;
  auto made = blank(device, device.ops.make_mw, who);
  made->pd = &pd;
  made->mw_type = type;
  if (const int error = device.ops.alloc_mw(*made, udata); error != 0) return created(error);
  ++pd.usecnt;
  device.track(*made);
  mw = std::move(made);
  return 0;
}

int ib_dealloc_mw(Mw& mw) {
  if (const int error = mw.device->ops.dealloc_mw(mw); error != 0) return error;
  --mw.pd->usecnt;
  return gone(mw);
}

// CQ ----------------------------------------------------------------------------------------------------------------------

int ib_create_cq(Device& device, const CqInitAttr& attr, const Consumer& who, const Udata* udata,
                 std::unique_ptr<Cq>& cq) {
  auto made = blank(device, device.ops.make_cq, who);
  made->comp_vector = attr.comp_vector;
  if (const int error = device.ops.create_cq(*made, attr, udata); error != 0) return created(error);
  device.track(*made);
  cq = std::move(made);
  return 0;
}

int ib_modify_cq(Cq& cq, std::uint16_t count, std::uint16_t period) {
  const DeviceOps& ops = cq.device->ops;
  return ops.modify_cq != nullptr ? ops.modify_cq(cq, count, period) : -EOPNOTSUPP;
}

int ib_resize_cq(Cq& cq, std::uint32_t cqe, const Udata* udata) {
  const DeviceOps& ops = cq.device->ops;
  return ops.resize_cq != nullptr ? ops.resize_cq(cq, cqe, udata) : -EOPNOTSUPP;
}

int ib_destroy_cq(Cq& cq) {
  if (cq.usecnt != 0) return -EBUSY;
  if (const int error = cq.device->ops.destroy_cq(cq); error != 0) return error;
  return gone(cq);
}

// SRQ ---------------------------------------------------------------------------------------------------------------------

int ib_create_srq(Pd& pd, const SrqInitAttr& attr, const Consumer& who, const Udata* udata, std::unique_ptr<Srq>& srq) {
  Device& device = *pd.device;
  if (device.ops.create_srq == nullptr) return -EOPNOTSUPP;
  auto made = blank(device, device.ops.make_srq, who);
  made->pd = &pd;
  made->xrcd = attr.xrcd;
  made->cq = attr.cq;
  if (const int error = device.ops.create_srq(*made, attr, udata); error != 0) return created(error);
  ++pd.usecnt;
  if (attr.xrcd != nullptr) {
    ++attr.xrcd->usecnt;
    ++attr.xrcd->domain->members;
  }
  if (attr.cq != nullptr) ++attr.cq->usecnt;
  device.track(*made);
  srq = std::move(made);
  return 0;
}

int ib_modify_srq(Srq& srq, const ibv_srq_attr& attr, std::uint32_t mask, const Udata* udata) {
  const DeviceOps& ops = srq.device->ops;
  return ops.modify_srq != nullptr ? ops.modify_srq(srq, attr, mask, udata) : -EOPNOTSUPP;
}

int ib_query_srq(Srq& srq, ibv_srq_attr& attr) {
  const DeviceOps& ops = srq.device->ops;
  return ops.query_srq != nullptr ? ops.query_srq(srq, attr) : -EOPNOTSUPP;
}

int ib_destroy_srq(Srq& srq) {
  if (srq.usecnt != 0) return -EBUSY;
  if (const int error = srq.device->ops.destroy_srq(srq); error != 0) return error;
  --srq.pd->usecnt;
  if (srq.xrcd != nullptr) {
    --srq.xrcd->usecnt;
    --srq.xrcd->domain->members;
  }
  if (srq.cq != nullptr) --srq.cq->usecnt;
  return gone(srq);
}

// QP ----------------------------------------------------------------------------------------------------------------------

namespace {

void qp_usecnt_inc(Qp& qp) {
  ++qp.pd->usecnt;
  for (Cq* cq : {qp.send_cq, qp.recv_cq})
    if (cq != nullptr) ++cq->usecnt;
  if (qp.srq != nullptr) ++qp.srq->usecnt;
}

void qp_usecnt_dec(Qp& qp) {
  --qp.pd->usecnt;
  for (Cq* cq : {qp.send_cq, qp.recv_cq})
    if (cq != nullptr) --cq->usecnt;
  if (qp.srq != nullptr) --qp.srq->usecnt;
}

void initialise(Qp& qp, const QpInitAttr& attr) {
  qp.qp_type = attr.qp_type;
  qp.send_cq = attr.send_cq;
  qp.recv_cq = attr.recv_cq;
  qp.srq = attr.srq;
  qp.domain = attr.domain;
  qp.sq_sig_all = attr.sq_sig_all;
}

}  // namespace

int ib_create_qp(Pd& pd, const QpInitAttr& attr, const Consumer& who, const Udata* udata, std::unique_ptr<Qp>& qp) {
  Device& device = *pd.device;
  auto made = blank(device, device.ops.make_qp, who);
  initialise(*made, attr);
  made->pd = &pd;
  if (const int error = device.ops.create_qp(*made, attr, udata); error != 0) return created(error);
  qp_usecnt_inc(*made);
  device.track(*made);
  qp = std::move(made);
  return 0;
}

int ib_modify_qp(Qp& handle, const ibv_qp_attr& given, std::uint32_t mask, const Udata* udata) {
  Qp& qp = handle.target();
  Device& device = *qp.device;
  QpAttr attr;
  static_cast<ibv_qp_attr&>(attr) = given;
  if ((mask & IBV_QP_AV) != 0) {
    const ibv_ah_attr& av = attr.ah_attr;
    if (av.is_global == 0 || !device.gids.usable(av.grh.sgid_index)) return -EINVAL;
    Gid gid;
    std::copy_n(av.grh.dgid.raw, gid.size(), gid.begin());
    int error = 0;
    attr.dmac = device.kernel.resolve(gid, error);
    if (error != 0) return error;
  }
  if (const int error = device.ops.modify_qp(qp, attr, mask, udata); error != 0) return error;
  if ((mask & IBV_QP_PORT) != 0) qp.port = attr.port_num;
  return 0;
}

int ib_query_qp(Qp& qp, ibv_qp_attr& attr, ibv_qp_init_attr& init) {
  const DeviceOps& ops = qp.device->ops;
  return ops.query_qp != nullptr ? ops.query_qp(qp.target(), attr, init) : -EOPNOTSUPP;
}

namespace {

/// The shared QP goes with its last handle; while the device destroys it nobody can open it any more.
int destroy_shared_qp(Qp& handle) {
  Qp& real = *handle.real;
  std::erase(real.handles, &handle);
  if (real.handles.empty()) {
    real.domain->targets.erase(real.qpn);
    if (const int error = real.device->ops.destroy_qp(real); error != 0) {
      real.domain->targets[real.qpn] = handle.real;
      real.handles.push_back(&handle);
      return error;
    }
    --real.domain->members;
  }
  --handle.xrcd->usecnt;
  return gone(handle);
}

}  // namespace

int ib_destroy_qp(Qp& qp) {
  if (qp.real != nullptr) return destroy_shared_qp(qp);
  if (qp.usecnt != 0) return -EBUSY;
  if (const int error = qp.device->ops.destroy_qp(qp); error != 0) return error;
  qp_usecnt_dec(qp);
  return gone(qp);
}

namespace {

std::unique_ptr<Qp> open_shared_qp(const std::shared_ptr<Qp>& real, Xrcd& xrcd, const Consumer& who) {
  Device& device = *xrcd.device;
  auto handle = blank(device, device.ops.make_qp, who);
  handle->qp_type = IBV_QPT_XRC_RECV;
  handle->qpn = real->qpn;
  handle->real = real;
  handle->xrcd = &xrcd;
  ++xrcd.usecnt;
  real->handles.push_back(handle.get());
  device.track(*handle);
  return handle;
}

}  // namespace

// A target QP has neither rings nor CQs nor a PD of its own: all come with the SRQ that a packet names.
int ib_create_xrc_target(Xrcd& xrcd, const QpInitAttr& attr, const Consumer& who, const Udata* udata,
                         std::unique_ptr<Qp>& handle) {
  Device& device = *xrcd.device;
  std::shared_ptr<Qp> real = blank(device, device.ops.make_qp, who);
  initialise(*real, attr);
  real->domain = xrcd.domain;
  if (const int error = device.ops.create_qp(*real, attr, udata); error != 0) return created(error);
  ++real->domain->members;
  real->domain->targets[real->qpn] = real;
  handle = open_shared_qp(real, xrcd, who);
  return 0;
}

int ib_open_qp(Xrcd& xrcd, std::uint32_t qpn, const Consumer& who, std::unique_ptr<Qp>& handle) {
  const auto it = xrcd.domain->targets.find(qpn);
  if (it == xrcd.domain->targets.end()) return -EINVAL;
  handle = open_shared_qp(it->second, xrcd, who);
  return 0;
}

// AH, multicast, XRC domains ----------------------------------------------------------------------------------------------

int ib_create_ah(Pd& pd, const ibv_ah_attr& attr, const Consumer& who, const Udata* udata, std::unique_ptr<Ah>& ah) {
  Device& device = *pd.device;
  if (device.ops.create_ah == nullptr) return -EOPNOTSUPP;
  if (attr.is_global == 0 || !device.gids.usable(attr.grh.sgid_index)) return -EINVAL;
  Gid gid;
  std::copy_n(attr.grh.dgid.raw, gid.size(), gid.begin());
  auto made = blank(device, device.ops.make_ah, who);
  made->pd = &pd;
  int error = 0;
  made->dmac = device.kernel.resolve(gid, error);
  if (error == 0) error = device.ops.create_ah(*made, attr, udata);
  if (error != 0) return error;
  ++pd.usecnt;
  device.track(*made);
  ah = std::move(made);
  return 0;
}

int ib_destroy_ah(Ah& ah) {
  if (const int error = ah.device->ops.destroy_ah(ah); error != 0) return error;
  --ah.pd->usecnt;
  return gone(ah);
}

int ib_attach_mcast(Qp& qp, const Gid& group) {
  if (std::find(qp.groups.begin(), qp.groups.end(), group) != qp.groups.end()) return 0;
  if (qp.device->ops.attach_mcast == nullptr) return -EOPNOTSUPP;
  if (qp.qp_type != IBV_QPT_UD || !multicast_mac(group)) return -EINVAL;
  if (const int error = qp.device->ops.attach_mcast(qp, group); error != 0) return created(error);
  qp.groups.push_back(group);
  ++qp.usecnt;
  return 0;
}

int ib_detach_mcast(Qp& qp, const Gid& group) {
  const auto at = std::find(qp.groups.begin(), qp.groups.end(), group);
  if (at == qp.groups.end()) return -EINVAL;
  if (const int error = qp.device->ops.detach_mcast(qp, group); error != 0) return error;
  qp.groups.erase(at);
  --qp.usecnt;
  return 0;
}

int ib_alloc_xrcd(XrcDomain& domain, const Udata* udata) {
  const DeviceOps& ops = domain.device->ops;
  return ops.alloc_xrcd != nullptr ? created(ops.alloc_xrcd(domain, udata)) : -EOPNOTSUPP;
}

int ib_dealloc_xrcd(XrcDomain& domain) { return domain.device->ops.dealloc_xrcd(domain); }

int ib_destroy(Object& object) {
  switch (object.type) {
    case ObjectType::pd:
      return ib_dealloc_pd(static_cast<Pd&>(object));
    case ObjectType::mr:
      return ib_dereg_mr(static_cast<Mr&>(object));
    case ObjectType::mw:
      return ib_dealloc_mw(static_cast<Mw&>(object));
    case ObjectType::cq:
      return ib_destroy_cq(static_cast<Cq&>(object));
    case ObjectType::qp:
      return ib_destroy_qp(static_cast<Qp&>(object));
    case ObjectType::ah:
      return ib_destroy_ah(static_cast<Ah&>(object));
    case ObjectType::srq:
      return ib_destroy_srq(static_cast<Srq&>(object));
    case ObjectType::xrcd:
      break;
  }
  return -EINVAL;
}

}  // namespace kernel
