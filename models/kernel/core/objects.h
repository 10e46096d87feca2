// SPDX-License-Identifier: Apache-2.0
// The RDMA core's objects: what every driver's PD, MR, CQ, QP … has, with its use count (S-OBJ-20), and the attributes by
// which they are made. A driver derives its own objects from them. An object belongs to the context of an opened file, or
// to a kernel consumer.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernel/core/gid_table.h"
#include "kernel/event_times.h"
#include "memory/address_space.h"

namespace kernel {

class Device;
class EventFile;
struct CqPoll;
struct Cq;
struct Object;
struct Qp;

enum class ObjectType : std::uint8_t { pd, mr, mw, cq, qp, ah, srq, xrcd };
constexpr std::size_t kObjectTypes = 8;

/// Who has a resource, for listings: a process, or a kernel consumer (pid 0 and its module's name).
struct ResourceOwner {
  std::uint32_t pid = 0;
  std::string comm;  ///< its name
};

/// The relation between an opened uverbs file and the driver (ib_ucontext). Kernel consumers have none.
struct Ucontext {
  virtual ~Ucontext() = default;
  Device* device = nullptr;
  memory::AddressSpace* user = nullptr;  ///< of the process
  const ResourceOwner* owner = nullptr;
  std::uint32_t number = 0;  ///< in its device, from 1
};

/// For whom an object is made.
struct Consumer {
  explicit Consumer(Ucontext& c) : ucontext(&c), owner(c.owner) {}
  /// A kernel consumer; `o` outlives its objects.
  explicit Consumer(const ResourceOwner& o) : owner(&o) {}
  Ucontext* ucontext = nullptr;
  const ResourceOwner* owner;
};

/// What the uverbs file of an object keeps about it (ib_uobject). Unused for objects of kernel consumers.
struct Uobject {
  std::uint32_t handle = 0;       ///< in its file
  std::uint64_t user_handle = 0;  ///< what the library gave, for events
  std::uint32_t commands = 0;     ///< commands that use the object now (S-OBJ-24)
  bool destroying = false;
  std::shared_ptr<EventFile> async;
  std::uint32_t async_events_reported = 0;
  // CQs only:
  std::shared_ptr<EventFile> channel;
  std::uint32_t comp_events_reported = 0;
};

/// An asynchronous event of an object. Runs in a work queue and may not block.
using EventHandler = void (*)(Object&, ibv_event_type, sim::trace::Cause);
/// A CQ that was armed has a completion. May not block. That of a program's CQ runs in the tasklet, that of a kernel
/// consumer's in the hard interrupt.
using CompHandler = void (*)(Cq&, sim::trace::Cause, const EventTimes&);

struct Object {
  explicit Object(ObjectType t) : type(t) {}
  virtual ~Object() = default;
  ObjectType type;
  Device* device = nullptr;
  Ucontext* ucontext = nullptr;  ///< null: of a kernel consumer
  const ResourceOwner* owner = nullptr;
  std::uint32_t usecnt = 0;  ///< objects that refer to this one; not zero = EBUSY on destroy
  EventHandler event_handler = nullptr;
  void* context = nullptr;  ///< the consumer's own, for its handlers
  Uobject uobject;
};

struct Mr;
struct Pd : Object {
  Pd() : Object(ObjectType::pd) {}
  std::uint32_t pdn = 0;
  // Of kernel consumers only:
  std::shared_ptr<Mr> internal_mr;       ///< covers all DMA addresses
  std::uint32_t local_dma_lkey = 0;      ///< names DMA addresses in the consumer's own work requests
  std::uint32_t unsafe_global_rkey = 0;  ///< names them in those of the peer; 0 unless IB_PD_UNSAFE_GLOBAL_RKEY
};

/// A range of user memory to be registered: address, length, the address by which work requests name its first byte,
/// enum ibv_access_flags.
struct UserMrAttr {
  std::uint64_t start = 0, length = 0, iova = 0;
  std::uint32_t access = 0;
};
struct Mr : Object {
  Mr() : Object(ObjectType::mr) {}
  Pd* pd = nullptr;
  std::uint64_t iova = 0, length = 0;  ///< iova: address that the consumer gave to its first byte
  std::uint32_t access = 0;            ///< enum ibv_access_flags
  std::uint32_t key = 0;               ///< lkey and rkey
};

/// Memory window.
struct Mw : Object {
  Mw() : Object(ObjectType::mw) {}
  Pd* pd = nullptr;
  ibv_mw_type mw_type = IBV_MW_TYPE_1;
  std::uint32_t key = 0;  ///< as allocated; binding changes its low byte
};

/// `flags`: enum ib_uverbs_ex_create_cq_flags.
struct CqInitAttr {
  std::uint32_t cqe = 0, comp_vector = 0, flags = 0;
};
struct Cq : Object {
  Cq() : Object(ObjectType::cq) {}
  std::uint32_t cqn = 0, comp_vector = 0;
  std::uint32_t cqe = 0;  ///< entries that can be used
  CompHandler comp_handler = nullptr;
  std::shared_ptr<CqPoll> poll;  ///< of a CQ that the core polls (ib_alloc_cq)
};

/// An XRC domain of the device. Domains of one inode are the same (S-XRC-1).
struct XrcDomain {
  Device* device = nullptr;
  std::uint32_t xrcdn = 0;
  std::uint64_t inode = 0;                               ///< 0: private
  std::uint32_t members = 0;                             ///< SRQs, target QPs and opens of an inode, of all processes
  std::map<std::uint32_t, std::shared_ptr<Qp>> targets;  ///< XRC target QPs by QPN
};

/// One open of a domain.
struct Xrcd : Object {
  Xrcd() : Object(ObjectType::xrcd) {}
  std::shared_ptr<XrcDomain> domain;
};

struct SrqInitAttr {
  ibv_srq_type srq_type = IBV_SRQT_BASIC;
  std::uint32_t max_wr = 0, max_sge = 0;
  Xrcd* xrcd = nullptr;  ///< XRC only, with `cq`
  Cq* cq = nullptr;
};
struct Srq : Object {
  Srq() : Object(ObjectType::srq) {}
  std::uint32_t srqn = 0;
  Pd* pd = nullptr;
  Xrcd* xrcd = nullptr;  ///< XRC only, with `cq`
  Cq* cq = nullptr;
  std::uint32_t max_wr = 0, max_sge = 0;
};

/// `cap` is the consumer's wish; the queue pair has what it got. CQs are null where the type has no such queue.
struct QpInitAttr {
  Cq *send_cq = nullptr, *recv_cq = nullptr;
  Srq* srq = nullptr;
  std::shared_ptr<XrcDomain> domain;  ///< XRC_RECV
  ibv_qp_cap cap{};
  ibv_qp_type qp_type = IBV_QPT_RC;
  bool sq_sig_all = false;
};
/// Attributes of modify_qp, with the MAC address that the core resolved for the address vector.
struct QpAttr : ibv_qp_attr {
  Mac dmac = 0;
};
struct Qp : Object {
  Qp() : Object(ObjectType::qp) {}
  ibv_qp_type qp_type = IBV_QPT_RC;
  std::uint32_t qpn = 0;
  ibv_qp_state state = IBV_QPS_RESET;  ///< as the driver saw it last
  Pd* pd = nullptr;
  Cq *send_cq = nullptr, *recv_cq = nullptr;  ///< null where the type has no such queue
  Srq* srq = nullptr;
  ibv_qp_cap cap{};
  bool sq_sig_all = false;
  std::uint8_t port = 0;
  Xrcd* xrcd = nullptr;               ///< XRC_RECV: through which open of the domain
  std::shared_ptr<XrcDomain> domain;  ///< XRC_RECV
  std::shared_ptr<Qp> real;           ///< XRC_RECV: the shared QP behind this handle
  std::vector<Qp*> handles;           ///< of such a QP: who has it open
  std::vector<Gid> groups;            ///< multicast memberships, each counted in usecnt

  Qp& target() { return real != nullptr ? *real : *this; }
};

struct Ah : Object {
  Ah() : Object(ObjectType::ah) {}
  Pd* pd = nullptr;
  Mac dmac = 0;
};

}  // namespace kernel
