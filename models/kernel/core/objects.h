// SPDX-License-Identifier: Apache-2.0
// The RDMA core's objects of one opened device, with their use counts (S-OBJ-20), and user memory that they hold.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kernel/core/gid_table.h"
#include "kernel/dma_map.h"
#include "kernel/uverbs/event_file.h"
#include "memory/address_space.h"

namespace kernel {

/// User memory that is pinned and DMA-mapped.
struct UserRegion {
  memory::Va start{};
  std::uint64_t length = 0;
  DmaMapping mapping;
};

/// A page of doorbell records; several objects share it.
struct DbrPage {
  UserRegion region;
  std::uint32_t users = 0;
};

enum class ObjectType : std::uint8_t { pd, mr, mw, cq, qp, ah, srq, xrcd };

/// What every object has: its handle in the file, the handle that the user gave, and who uses it now.
struct Object {
  explicit Object(ObjectType t) : type(t) {}
  virtual ~Object() = default;
  ObjectType type;
  std::uint32_t handle = 0;
  std::uint64_t user_handle = 0;
  std::uint32_t usecnt = 0;    ///< objects that refer to this one; not zero = EBUSY on destroy
  std::uint32_t commands = 0;  ///< commands that use the object now (S-OBJ-24)
  bool destroying = false;
  std::uint32_t async_events_reported = 0;
};

struct Pd : Object {
  Pd() : Object(ObjectType::pd) {}
  std::uint32_t pdn = 0;
};

struct Mr : Object {
  Mr() : Object(ObjectType::mr) {}
  Pd* pd = nullptr;
  UserRegion region;
  std::uint64_t iova = 0;    ///< address that the program gave to its first byte
  std::uint32_t access = 0;  ///< enum ibv_access_flags
  std::uint32_t key = 0;     ///< lkey and rkey
};

/// Memory window.
struct Mw : Object {
  Mw() : Object(ObjectType::mw) {}
  Pd* pd = nullptr;
  std::uint32_t key = 0;  ///< as allocated; binding changes its low byte
};

struct Cq : Object {
  Cq() : Object(ObjectType::cq) {}
  std::uint32_t cqn = 0, comp_vector = 0;
  std::uint32_t entries = 0, cqe_size = 64;  ///< slots of the ring, bytes of each
  std::uint32_t arm_sn = 0;                  ///< the kernel's own count of events
  std::shared_ptr<EventFile> channel, async;
  UserRegion buffer;
  DbrPage* dbr = nullptr;
  std::uint32_t comp_events_reported = 0;
  bool resizing = false;
  bool listed = false;  ///< on its event queue's tasklet list
};

/// An XRC domain of the device. Domains of one inode are the same (S-XRC-1).
struct Qp;
struct XrcDomain {
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

struct Srq : Object {
  Srq() : Object(ObjectType::srq) {}
  std::uint32_t srqn = 0;
  Pd* pd = nullptr;
  Xrcd* xrcd = nullptr;  ///< XRC only, with `cq`
  Cq* cq = nullptr;
  std::shared_ptr<EventFile> async;
  UserRegion buffer;
  DbrPage* dbr = nullptr;
  std::uint32_t max_wr = 0, max_sge = 0;
};

struct Qp : Object {
  Qp() : Object(ObjectType::qp) {}
  ibv_qp_type qp_type = IBV_QPT_RC;
  std::uint32_t qpn = 0;
  ibv_qp_state state = IBV_QPS_RESET;
  Pd* pd = nullptr;
  Cq *send_cq = nullptr, *recv_cq = nullptr;  ///< null where the type has no such queue
  Srq* srq = nullptr;
  Xrcd* xrcd = nullptr;               ///< XRC_RECV: through which open of the domain
  std::shared_ptr<XrcDomain> domain;  ///< XRC_RECV
  std::shared_ptr<Qp> real;           ///< XRC_RECV: the shared QP behind this handle
  std::vector<Qp*> handles;           ///< of such a QP: who has it open
  std::shared_ptr<EventFile> async;
  UserRegion buffer;
  DbrPage* dbr = nullptr;
  std::int32_t bfreg = -1;
  std::uint32_t user_index = 0, uar = 0;
  std::uint32_t sq_wqebbs = 0, rq_wqes = 0, rq_shift = 0;
  std::uint32_t page_offset = 0;  ///< of the ring in its first page, in 64-byte units
  ibv_qp_cap cap{};
  bool sq_sig_all = false;
  std::uint32_t flags = 0;  ///< MLX5_QP_FLAG_*
  std::uint8_t port = 0;    ///< attributes as last set by modify_qp
  std::uint16_t pkey_index = 0;
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint32_t access = 0;
  std::uint32_t dest_qpn = 0;
  std::vector<Gid> groups;  ///< multicast memberships, each counted in usecnt
  std::uint64_t dbr_offset = 0;

  Qp& target() { return real != nullptr ? *real : *this; }
};

struct Ah : Object {
  Ah() : Object(ObjectType::ah) {}
  Pd* pd = nullptr;
  Mac dmac = 0;
};

}  // namespace kernel
