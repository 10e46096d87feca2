// SPDX-License-Identifier: Apache-2.0
// A program that writes its rings, records and doorbells itself, wrongly. Whatever it writes, the device answers with a
// completion or an event, and goes on serving the queue pair that is reset afterwards.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "tests/system/verbs_pair.h"
#include "verbs_frontend/mlx5/mlx5.h"

namespace sys::test {
namespace {

using namespace sim::literals;
namespace mlx5 = verbs::mlx5;
using Wqe = std::array<std::uint8_t, 256>;

void pause(End& e, sim::Picos d) { e.thread().sleep(d); }
void nothing(End&) {}

void put32(Wqe& w, std::size_t at, std::uint32_t v) {
  v = __builtin_bswap32(v);
  std::memcpy(&w[at], &v, 4);
}
void put64(Wqe& w, std::size_t at, std::uint64_t v) {
  v = __builtin_bswap64(v);
  std::memcpy(&w[at], &v, 8);
}

/// A correct WQE of `opcode` for the QP of `e`, which is its own peer. Returns its length in 16-byte units.
std::uint32_t build(End& e, std::uint8_t opcode, Wqe& w) {
  w.fill(0);
  std::size_t at = 16;
  if (e.o.type == IBV_QPT_UD) {
    put32(w, at, 0x11111111);
    put32(w, at + 8, 0x80000000 | e.qp->qp_num);
    w[at + 14] = 0xc0;
    const std::uint8_t mac[6] = {0x02, 0x52, 0x44, 0, 0, 1};
    std::memcpy(&w[at + 20], mac, 6);
    w[at + 27] = 64;
    put32(w, at + 28, 3U << 20);
    std::memcpy(&w[at + 32], e.mine.gid.raw, 16);
    at += 48;
  }
  const bool atomic = opcode == MLX5_OPCODE_ATOMIC_CS || opcode == MLX5_OPCODE_ATOMIC_FA;
  if (opcode == MLX5_OPCODE_RDMA_WRITE || opcode == MLX5_OPCODE_RDMA_WRITE_IMM || opcode == MLX5_OPCODE_RDMA_READ ||
      atomic) {
    put64(w, at, e.va(8192));
    put32(w, at + 8, e.mr->rkey);
    at += atomic ? 32 : 16;
  }
  if (opcode != MLX5_OPCODE_NOP) {
    put32(w, at, atomic ? 8 : 48);
    put32(w, at + 4, e.mr->lkey);
    put64(w, at + 8, e.va());
    at += 16;
  }
  const auto ds = static_cast<std::uint32_t>(at / 16);
  put32(w, 0, (mlx5::qp_of(e.qp).sq.cur_post & 0xffff) << 8 | opcode);
  put32(w, 4, e.qp->qp_num << 8 | ds);
  w[11] = 0x08;
  return ds;
}

/// Stores the WQE into the ring and rings, as the driver would after building it.
void post_raw(End& e, const Wqe& w, std::uint32_t ds) {
  mlx5::Machine m = mlx5::machine_for(e.context);
  mlx5::Qp& qp = mlx5::qp_of(e.qp);
  const std::uint32_t first = qp.sq.index(qp.sq.cur_post), blocks = (ds + 3) / 4;
  for (std::uint32_t i = 0; i < blocks; ++i) m.store_bytes(qp.sq.slot(qp.sq.index(first + i)), &w[i * 64], 64);
  qp.sq.wrid[first] = 77;
  qp.sq.wqe_head[first] = qp.sq.head;
  qp.sq.wr(qp.sq.head) = {0, 0, cpu::current().now()};
  qp.sq.cur_post += blocks;
  mlx5::ring_send_doorbell(m, qp, 1, false, ds, qp.sq.slot(first));
}

/// All completions and events of the next microseconds.
struct Answer {
  std::vector<ibv_wc_status> statuses;
  std::vector<ibv_event_type> events;
  ibv_qp_state state = IBV_QPS_RTS;
};
Answer answer(End& e, sim::Picos limit) {
  Answer a;
  const sim::Picos end = e.thread().now() + limit;
  while (e.thread().now() < end) {
    ibv_wc wc{};
    if (ibv_poll_cq(e.cq, 1, &wc) == 1) a.statuses.push_back(wc.status);
    else e.thread().sleep(1_us);
  }
  a.events = e.events();
  a.state = e.state();
  return a;
}

void restart(End& e) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE), 0);
  ASSERT_EQ(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE), 0);
  e.go_to_rts();
}

struct Case {
  const char* name;
  ibv_qp_type type;
  std::uint8_t opcode;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
class CorruptedWqe : public testing::TestWithParam<Case> {};

// Each byte of the WQE in turn takes four other values.
TEST_P(CorruptedWqe, IsAnsweredWhateverItContains_S_ERR_16) {
  const Case& c = GetParam();
  const bool names_no_window = c.opcode == MLX5_OPCODE_SEND_INVAL;  // its key is invalid (S-ERR-21)
  Pair p;
  p.options[0].type = c.type;
  p.options[0].timeout = 1;
  p.options[0].retry = p.options[0].rnr_retry = 0;
  p.options[0].qp_access = p.options[0].mr_access =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  p.options[0].connect = p.options[1].connect = false;
  for (auto& h : p.scenario.hosts) h.env["MLX5_SHUT_UP_BF"] = "1";
  std::size_t silent = 0, errors = 0, successes = 0;
  p.run(
      [&](End& e) {
        e.peer = e.mine;  // its own peer
        e.go_to_rts();
        Wqe wqe;
        const std::uint32_t length = build(e, c.opcode, wqe) * 16;
        for (std::uint32_t at = 0; at < length; ++at)
          for (const unsigned mask : {0x01U, 0x80U, 0xffU, 0x3cU}) {
            const std::uint32_t ds = build(e, c.opcode, wqe);
            wqe[at] = static_cast<std::uint8_t>(wqe[at] ^ mask);
            for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(e.receive(i, 16384, 256), 0);
            post_raw(e, wqe, ds);
            const Answer a = answer(e, 40_us);
            const bool failed = a.state == IBV_QPS_ERR || a.state == IBV_QPS_SQE;
            ASSERT_TRUE(failed || a.state == IBV_QPS_RTS) << "byte " << at << " ^ " << mask;
            for (const ibv_wc_status s : a.statuses) (s == IBV_WC_SUCCESS ? successes : errors) += 1;
            silent += a.statuses.empty() && a.events.empty();
            EXPECT_FALSE(failed && a.statuses.empty() && a.events.empty()) << "byte " << at << " ^ " << mask;
            restart(e);
          }
        for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(e.receive(i, 16384, 256), 0);
        post_raw(e, wqe, build(e, c.opcode, wqe));
        const Answer last = answer(e, 40_us);
        for (const ibv_wc_status s : last.statuses) EXPECT_TRUE(s == IBV_WC_SUCCESS || names_no_window);
      },
      nothing);
  EXPECT_GT(errors, 20u);
  EXPECT_TRUE(successes > 10 || names_no_window) << "bits that mean nothing";
}
INSTANTIATE_TEST_SUITE_P(All, CorruptedWqe,
                         testing::Values(Case{"rc_nop", IBV_QPT_RC, MLX5_OPCODE_NOP},
                                         Case{"rc_send", IBV_QPT_RC, MLX5_OPCODE_SEND},
                                         Case{"rc_send_imm", IBV_QPT_RC, MLX5_OPCODE_SEND_IMM},
                                         Case{"rc_send_inval", IBV_QPT_RC, MLX5_OPCODE_SEND_INVAL},
                                         Case{"rc_write", IBV_QPT_RC, MLX5_OPCODE_RDMA_WRITE},
                                         Case{"rc_write_imm", IBV_QPT_RC, MLX5_OPCODE_RDMA_WRITE_IMM},
                                         Case{"rc_read", IBV_QPT_RC, MLX5_OPCODE_RDMA_READ},
                                         Case{"rc_compare_swap", IBV_QPT_RC, MLX5_OPCODE_ATOMIC_CS},
                                         Case{"rc_fetch_add", IBV_QPT_RC, MLX5_OPCODE_ATOMIC_FA},
                                         Case{"uc_send", IBV_QPT_UC, MLX5_OPCODE_SEND},
                                         Case{"uc_write_imm", IBV_QPT_UC, MLX5_OPCODE_RDMA_WRITE_IMM},
                                         Case{"ud_send", IBV_QPT_UD, MLX5_OPCODE_SEND}),
                         [](const auto& i) { return std::string(i.param.name); });

// A WQE that claims more basic blocks than have been posted ends the queue at the producer index.
TEST(BadWqe, LongerThanWhatIsPostedIsAnOperationError_S_BF_6) {
  Pair p;
  p.run(
      [](End& e) {
        Wqe w;
        const std::uint32_t ds = build(e, MLX5_OPCODE_SEND, w);
        w[7] = 63;  // in the ring; the doorbell below says one block
        mlx5::Machine m = mlx5::machine_for(e.context);
        mlx5::Qp& qp = mlx5::qp_of(e.qp);
        for (std::uint32_t i = 0; i < 4; ++i) m.store_bytes(qp.sq.slot(i), &w[i * 64], 64);
        qp.sq.cur_post += 1;
        qp.sq.head += 1;
        m.barrier(cpu::Barrier::udma_to_device);
        m.store(qp.dbr + mlx5::kSendWord, mlx5::be32(qp.sq.cur_post));
        Wqe bell;
        build(e, MLX5_OPCODE_SEND, bell);
        put32(bell, 0, MLX5_OPCODE_SEND);
        std::uint64_t first;
        std::memcpy(&first, bell.data(), 8);
        m.barrier(cpu::Barrier::mmio_wc_start);
        m.mmio_store64(qp.bf->reg + qp.bf->half, first);
        m.barrier(cpu::Barrier::mmio_flush_writes);
        const Answer a = answer(e, 100_us);
        EXPECT_EQ(a.statuses, (std::vector<ibv_wc_status>{IBV_WC_LOC_QP_OP_ERR})) << "and no flushes of stale slots";
        EXPECT_EQ(a.state, IBV_QPS_ERR);
        (void)ds;
      },
      nothing);
}

TEST(BadDoorbell, RecordsBeyondTheRingChangeNothing_S_DBR_4) {
  Pair p;
  p.run(
      [](End& e) {
        mlx5::Machine m = mlx5::machine_for(e.context);
        mlx5::Qp& qp = mlx5::qp_of(e.qp);
        const auto ring = [&](std::uint32_t index, std::uint32_t record) {
          m.store(qp.dbr + mlx5::kSendWord, mlx5::be32(record));
          m.store(qp.dbr + mlx5::kRecvWord, mlx5::be32(record));
          m.barrier(cpu::Barrier::mmio_wc_start);
          const std::uint64_t bell = std::uint64_t{mlx5::be32(e.qp->qp_num << 8 | 1)} << 32 | mlx5::be32(index << 8);
          m.mmio_store64(qp.bf->reg + qp.bf->half, bell);
          m.barrier(cpu::Barrier::mmio_flush_writes);
        };
        ring(0x7000, 0x7000);
        ring(0xfff0, 0x8000);
        pause(e, 100_us);
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
        m.store(qp.dbr + mlx5::kSendWord, std::uint32_t{0});
        m.store(qp.dbr + mlx5::kRecvWord, std::uint32_t{0});
        e.meet("rung");
        ASSERT_EQ(e.send(1, 0, 64), 0);
        EXPECT_EQ(e.wait(1)[0].status, IBV_WC_SUCCESS);
        e.meet("sent");
      },
      [](End& e) {
        mlx5::Machine m = mlx5::machine_for(e.context);
        m.store(mlx5::qp_of(e.qp).dbr + mlx5::kRecvWord, mlx5::be32(0x9000));
        e.meet("rung");
        pause(e, 100_us);  // the send meets a record that says nonsense: receiver not ready
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        EXPECT_EQ(e.wait(1)[0].status, IBV_WC_SUCCESS);
        e.meet("sent");
      });
  EXPECT_GE(p.counter("host0.hca.scheduler.bad_records"), 2u);
  EXPECT_GE(p.counter("host1.hca.receive_queue.bad_records"), 1u);
}

TEST(BadDoorbell, OfForeignPagesAndUnknownOffsetsIsCountedAndIgnored_S_UAR_1) {
  Pair p;
  p.run(
      [](End& e) {
        mlx5::Machine m = mlx5::machine_for(e.context);
        mlx5::Mlx5Context& c = mlx5::mlx5_of(e.context);
        mlx5::Qp& qp = mlx5::qp_of(e.qp);
        memory::Va foreign{};
        for (const memory::Va page : c.uar_pages)
          if (page.v != (qp.bf->reg.v & ~0xfffULL)) foreign = page;
        ASSERT_NE(foreign.v, 0u);
        const auto bell = [&](memory::Va at, std::uint32_t high, std::uint32_t low) {
          m.barrier(cpu::Barrier::mmio_wc_start);
          m.mmio_store64(at, std::uint64_t{mlx5::be32(low)} << 32 | mlx5::be32(high));
          m.barrier(cpu::Barrier::mmio_flush_writes);
        };
        ibv_sge s = e.sge(0, 64);
        ibv_recv_wr receive{}, *bad = nullptr;
        receive.sg_list = &s;
        receive.num_sge = 1;
        ASSERT_EQ(ibv_post_recv(e.qp, &receive, &bad), 0);
        bell(foreign + 0x800, 0x0a, e.qp->qp_num << 8 | 2);         // another page's QP
        bell(qp.bf->reg, 0x0a, 0xfffff << 8 | 2);                   // no such QP
        bell(c.uar_pages.back() + 0x20, 0, mlx5::cq_of(e.cq).cqn);  // a CQ is armed through the first page
        bell(c.uar_pages.front() + 0x40, 1, 0);                     // an EQ of the kernel's
        bell(c.uar_pages.front() + 0x100, 1, 2);
        bell(c.uar_pages.front() + 0xff8, 1, 2);
        pause(e, 100_us);
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
        ibv_wc wc{};
        EXPECT_EQ(ibv_poll_cq(e.cq, 1, &wc), 0);
      },
      nothing);
  EXPECT_EQ(p.counter("host0.hca.scheduler.foreign_doorbells"), 1u);
  EXPECT_EQ(p.counter("host0.hca.scheduler.unknown_qp"), 1u);
  EXPECT_EQ(p.counter("host0.hca.uar.foreign_doorbells"), 1u);
  EXPECT_EQ(p.counter("host0.hca.uar.unknown_writes"), 3u);
}

// Sixty segments of a few bytes, each across a page boundary: more pieces than pages in a packet.
TEST(BadWqe, ManySegmentsAcrossPagesAreGathered) {
  Pair p;
  p.options[0].bytes = p.options[1].bytes = 1 << 20;
  p.options[0].mtu = p.options[1].mtu = IBV_MTU_4096;
  p.options[0].sge = 30;
  p.run(
      [](End& e) {
        e.fill(3);
        std::vector<ibv_sge> list;
        for (std::size_t i = 0; i < 30; ++i) list.push_back(e.sge((i + 1) * 8192 - 10, 20));
        pause(e, 50_us);
        ASSERT_EQ(e.send(1, list), 0);
        EXPECT_EQ(e.wait(1)[0].status, IBV_WC_SUCCESS);
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 4096), 0);
        EXPECT_EQ(e.wait(1)[0].byte_len, 600u);
        for (std::size_t i = 0; i < 30; ++i) EXPECT_TRUE(e.holds(i * 20, 20, 3, (i + 1) * 8192 - 10)) << i;
      });
}

}  // namespace
}  // namespace sys::test
