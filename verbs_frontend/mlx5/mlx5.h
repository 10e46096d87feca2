// SPDX-License-Identifier: Apache-2.0
// Objects of the mlx5 user-space driver: context, UAR registers, doorbell records, work queues, CQ and QP. Each begins
// with the public verbs struct, so that the library's and the program's pointers are pointers to it.
#pragma once

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "cpu/call_span.h"
#include "cpu/thread.h"
#include "hca/prm.h"
#include "sim/journey.h"
#include "sim/trace/gauge.h"
#include "sim/wqe_tags.h"
#include "verbs_frontend/libibverbs/provider.h"
#include "verbs_frontend/mlx5/machine.h"

namespace verbs::mlx5 {

// Doorbell records ---------------------------------------------------------------------------------------------------

/// A record of two big-endian words; one per cache line, from pages of the process' memory (S-DBR-1).
using Dbr = std::uint32_t;
inline constexpr unsigned kRecvWord = hca::prm::kRcvDbr / 4, kSendWord = hca::prm::kSndDbr / 4;
inline constexpr unsigned kCiWord = hca::prm::kCqSetCi / 4, kArmWord = hca::prm::kCqArm / 4;

class DbrPool {
 public:
  /// A zeroed record, nullptr when memory is exhausted.
  Dbr* alloc(memory::AddressSpace& space, std::size_t line);
  void free(Dbr* record);
  void release(memory::AddressSpace& space);

 private:
  std::vector<std::byte*> pages_;
  std::vector<Dbr*> free_;
};

// UAR ----------------------------------------------------------------------------------------------------------------

/// A BlueFlame register (bfreg). The half that the next doorbell uses belongs to the register, not to the QP (S-BF-1).
struct BfReg {
  memory::Va reg;                   ///< address of the first half
  std::uint32_t half = 0;           ///< offset of the half to use next
  std::uint32_t half_size = 0;      ///< 0: no halves
  std::uint32_t number = 0;         ///< 0: no BlueFlame on this register
  bool need_lock = false;           ///< shared by several QPs
  std::uint32_t dynamic_index = 0;  ///< of a thread domain's register: how the kernel counts it
  cpu::SpinLock lock;
};

// Context ------------------------------------------------------------------------------------------------------------

struct Qp;
struct Srq;

/// What a user index names, the number by which CQEs of version 1 name a queue (S-DEV-4): a QP or an XRC SRQ.
struct Resource {
  Qp* qp = nullptr;
  Srq* srq = nullptr;
  bool used() const { return qp != nullptr || srq != nullptr; }
};

struct Mlx5Context {
  verbs::Context base;  // first: the library's view

  std::uint32_t max_sq_desc = 0, max_rq_desc = 0, max_send_wqebb = 0, max_recv_wr = 0, max_srq_recv_wr = 0;
  std::uint32_t bf_reg_size = 0, total_bfregs = 0, low_latency_bfregs = 0;
  std::size_t cache_line = 64;
  unsigned cqe_version = 0;
  unsigned num_ports = 1;
  ibv_atomic_cap atomic_cap = IBV_ATOMIC_NONE;
  bool prefer_bf = true, shut_up_bf = false, single_threaded = false;
  /// Data for SGEs with this key are not copied (S-CQE-16).
  std::uint32_t null_key = hca::prm::kInvalidLkey;
  bool has_null_key = false;
  std::uint32_t eth_ports = 0;  ///< bit per port whose link layer is Ethernet

  std::vector<memory::Va> uar_pages;
  std::vector<std::unique_ptr<BfReg>> bfregs;
  DbrPool dbrs;
  // Registers of thread domains.
  std::uint32_t dynamic_bfregs = 0;  ///< that the kernel allows
  std::vector<memory::Va> dynamic_pages;
  std::vector<std::unique_ptr<BfReg>> dynamic_regs;
  std::vector<BfReg*> free_dynamic;
  std::vector<Resource> by_user_index;
  /// QPs by number: so CQEs of version 0 name them.
  std::map<std::uint32_t, Resource> by_number;
  Resource find(std::uint32_t index) const {
    if (cqe_version != 0) return index < by_user_index.size() ? by_user_index[index] : Resource{};
    const auto it = by_number.find(index);
    return it != by_number.end() ? it->second : Resource{};
  }
  /// By what a CQE names its QP or SRQ.
  std::uint32_t index_of(const mlx5_cqe64& cqe) const {
    return hca::prm::be32(cqe_version != 0 ? cqe.srqn_uidx : cqe.sop_drop_qpn) & 0xffffff;
  }

  memory::AddressSpace& space() { return base.syscalls->space(); }
  memory::Va cq_doorbell() const { return uar_pages.front() + hca::prm::kUarCqDoorbell; }
  std::uint32_t take_user_index(Resource resource);
  void give_user_index(std::uint32_t index) { by_user_index[index] = {}; }
};
inline Mlx5Context& mlx5_of(ibv_context* c) { return reinterpret_cast<Mlx5Context&>(verbs::context_of(c)); }
inline Machine machine_for(ibv_context* c) { return Machine(!mlx5_of(c).single_threaded); }

// Protection domain --------------------------------------------------------------------------------------------------

struct Td;

/// A protection domain, or a parent domain over one.
struct Pd {
  ibv_pd pd;
  std::uint32_t pdn;
  std::uint32_t users = 0;   ///< parent domains over it; of a parent domain: queues in it
  Pd* protection = nullptr;  ///< parent domain: what it is over
  Td* td = nullptr;          ///< parent domain: its thread domain, if any
};
inline Pd& pd_of(ibv_pd* p) { return *reinterpret_cast<Pd*>(p); }

// A queue created in, or gone from, what may be a parent domain.
void enter_domain(ibv_pd* pd);
void leave_domain(ibv_pd* pd);
bool is_parent_domain(ibv_pd* pd);
/// False when a thread domain makes the program responsible for one thread at a time.
bool locks_needed(const ibv_pd* pd);
/// The doorbell register of the thread domain; nullptr without one.
BfReg* dedicated_register(ibv_pd* pd);

/// XRC domain.
struct Xrcd {
  ibv_xrcd xrcd;
  std::uint32_t handle;
};
inline Xrcd& xrcd_of(ibv_xrcd* x) { return *reinterpret_cast<Xrcd*>(x); }

// Memory region ------------------------------------------------------------------------------------------------------

struct Mr {
  ibv_mr mr;
  bool null = false;  ///< of ibv_alloc_null_mr: the kernel knows nothing of it
};

// Completion queue ---------------------------------------------------------------------------------------------------

struct Cq {
  verbs::CqBase base;  // ibv_cq_ex first
  std::byte* buf = nullptr;
  std::uint32_t entries = 0;  ///< ring slots, a power of two
  std::uint32_t cqe_size = 64;
  std::uint32_t cqn = 0;
  std::uint32_t cons_index = 0;
  std::uint32_t arm_sn = 0;
  Dbr* dbr = nullptr;
  Lock lock;
  ibv_pd* domain = nullptr;  ///< parent domain that it was created in
  Qp* current = nullptr;     ///< QP of the last CQE, which the next one mostly names again
  sim::Tags* tags = nullptr;
  std::vector<sim::MsgId> delivered;  ///< journeys that end when the poll under way returns

  /// The poll under way, for its span.
  struct Polled {
    sim::Picos start{0};  ///< its entry; of one that ends a loop of skipped polls, the entry of the last
    std::uint32_t count = 0, failed = 0;
    sim::MsgId msg = 0;  ///< the first that it is about
  } polled;

  mlx5_cqe64 cqe{};  ///< ibv_cq_ex: the CQE under inspection
  Qp* cqe_qp = nullptr;
  std::uint8_t umr_opcode = 0;  ///< WC opcode when the CQE's is UMR or NOP

  // Detection of a loop of empty polls.
  cpu::Thread* poller = nullptr;
  sim::Picos last_return{-1}, last_sample{-1}, period{-1};
  sim::Counter* empty_polls = nullptr;
  // Slots of send queues that completions freed, and for how long they had been taken.
  sim::Counter *sq_slots_freed = nullptr, *sq_slot_time_ps = nullptr;

  ibv_cq& cq() { return *reinterpret_cast<ibv_cq*>(&base.cq_ex); }
};
inline Cq& cq_of(ibv_cq* c) { return *reinterpret_cast<Cq*>(c); }
static_assert(offsetof(ibv_cq_ex, context) == offsetof(ibv_cq, context));

// Work queues and QP ---------------------------------------------------------------------------------------------------

struct WorkQueue {
  std::byte* buf = nullptr;
  std::uint32_t wqe_cnt = 0;         ///< ring slots: 64-byte WQEBBs in an SQ, WQEs in an RQ
  std::uint32_t wqe_shift = 6;       ///< log2 of the bytes per slot
  std::uint32_t max_post = 0;        ///< WRs that fit
  std::uint32_t head = 0, tail = 0;  ///< WRs posted, WRs completed
  std::uint32_t cur_post = 0;        ///< SQ: WQEBBs posted
  std::int32_t max_gs = 0;
  std::int32_t state_max_gs = -1;  ///< most SGEs accepted in the current state, -1 = closed (S-QP-41)
  std::vector<std::uint64_t> wrid;
  std::vector<std::uint32_t> wqe_head;
  struct WrInfo {
    sim::MsgId msg;       ///< its journey
    std::uint8_t opcode;  ///< enum ibv_wr_opcode
    sim::Picos posted;    ///< entry of its post call
  };
  std::vector<WrInfo> wrs;  ///< SQ: by WR number (head, tail), a power of two of them
  sim::trace::Gauge occupancy;
  Lock lock;

  std::byte* slot(std::uint32_t i) const { return buf + (static_cast<std::size_t>(i) << wqe_shift); }
  std::byte* end() const { return slot(wqe_cnt); }
  std::uint32_t index(std::uint32_t counter) const { return counter & (wqe_cnt - 1); }
  WrInfo& wr(std::uint32_t number) { return wrs[number & (wrs.size() - 1)]; }
  /// Records how many WRs lie between head and tail, which have changed.
  void trace_occupancy(sim::Picos t) { occupancy.set(t, head - tail); }
};

/// Sizes of a QP's rings and the capabilities that go back to the program.
struct QpSizes {
  std::uint32_t sq_wqebbs = 0, sq_max_post = 0, sq_wqe_bytes = 0;
  std::uint32_t rq_wqes = 0, rq_stride = 0;
  std::uint32_t rq_bytes = 0, buf_bytes = 0;
  ibv_qp_cap granted{};
};
/// Computes them as the driver does (S-OBJ-40..43). `ops` = send_ops_flags, or all ones for ibv_create_qp. Returns 0 or EINVAL.
int size_qp(const Mlx5Context& c, ibv_qp_type type, const ibv_qp_cap& wanted, std::uint64_t ops, bool with_srq,
            bool signature, QpSizes& out);

struct Qp {
  verbs::QpBase base;  // ibv_qp_ex first
  std::byte* buf = nullptr;
  Dbr* dbr = nullptr;
  BfReg* bf = nullptr;
  WorkQueue sq, rq;
  std::uint32_t user_index = 0;
  std::uint32_t max_inline = 0;
  std::uint32_t flow = 0;
  std::uint8_t signal_bits = 0;  ///< CE bits of every WQE (sq_sig_all)
  std::uint8_t small_fence = 0;  ///< fm bits owed to the next WQE after LOCAL_INV or BIND_MW (S-PS-24)
  bool atomics = false;
  bool signature = false;  ///< WQEs carry a signature
  ibv_qp_cap granted{};
  sim::Tags* tags = nullptr;

  /// Batch of ibv_wr_* builders under way.
  struct Batch {
    std::byte* ctrl = nullptr;  ///< WQE of the last builder that found room
    std::byte* data = nullptr;  ///< where its next segment goes
    std::uint32_t ds = 0;
    std::uint32_t count = 0;
    std::uint32_t setters = 0;  ///< that this WQE still waits for
    std::uint32_t cur_post_at_start = 0;
    std::uint8_t small_fence_at_start = 0;
    bool inline_used = false;
    ibv_wr_opcode opcode = IBV_WR_SEND;
    std::uint32_t bytes = 0;
    int error = 0;
    sim::Picos entry{0};
    cpu::CallSpan call;
  } batch;
  std::vector<sim::MsgId> new_msgs;  ///< accepted in the call under way

  ibv_qp& qp() { return base.qp_ex.qp_base; }
  Mlx5Context& context() { return mlx5_of(qp().context); }
};
inline Qp& qp_of(ibv_qp* q) { return *reinterpret_cast<Qp*>(q); }

// Conductors and parts ------------------------------------------------------------------------------------------------

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad);
int poll_cq(ibv_cq* cq, int n, ibv_wc* wc);
int arm_cq(ibv_cq* cq, int solicited_only);

/// The WQ has no room for one more WR beside the `nreq` of this call. Looks again under the CQ lock, as polling frees room.
bool overflow(Machine& m, const WorkQueue& wq, std::uint32_t nreq, ibv_cq* cq);
/// Publishes the WQEs and rings the doorbell (S-BAR-2, S-BF-3). `ctrl` is the control segment whose first bytes go out.
void ring_send_doorbell(Machine& m, Qp& qp, std::uint32_t nreq, bool inlined, std::uint32_t ds, const std::byte* ctrl);
/// The first message of the call under way, 0 if none was accepted yet.
inline sim::MsgId first_new(const Qp& qp) { return qp.new_msgs.empty() ? 0 : qp.new_msgs.front(); }
/// Starts a journey for WR `number`, whose WQE and wr_id are at sq.cur_post, and publishes its id for the HCA.
void begin_journey(Machine& m, Qp& qp, std::uint32_t number, sim::Picos entry, ibv_wr_opcode opcode,
                   std::uint32_t bytes);

/// Removes the CQEs of a queue (S-QP-46); receives of a QP on `srq` go back to its free list.
void clean_cq(Machine& m, Cq& cq, std::uint32_t user_index, Srq* srq);
void forget_empty_polls(Cq& cq);
void set_builders(Qp& qp, std::uint64_t ops);
void set_cq_ex_ops(Cq& cq, std::uint64_t wc_flags);

inline bool set(const char* value) { return value != nullptr && std::strcmp(value, "0") != 0; }

}  // namespace verbs::mlx5
