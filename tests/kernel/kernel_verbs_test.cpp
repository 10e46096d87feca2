// SPDX-License-Identifier: Apache-2.0
// In-kernel verbs: objects without a context, sizes, the bytes of WQEs and doorbells, completions, arming.
#include <gtest/gtest.h>

#include <array>
#include <initializer_list>

#include "kernel_consumer.h"

namespace test {
namespace {

using kernel::IB_CQ_NEXT_COMP;
using kernel::IB_CQ_REPORT_MISSED_EVENTS;
using kernel::IB_CQ_SOLICITED;

std::vector<std::byte> words(std::initializer_list<std::uint32_t> list) {
  std::vector<std::byte> out(list.size() * 4);
  std::size_t at = 0;
  for (const std::uint32_t w : list) {
    const std::uint32_t big = prm::be32(w);
    std::memcpy(out.data() + at, &big, 4);
    at += 4;
  }
  return out;
}
/// What lies there once all stores have left the core.
std::vector<std::byte> bytes_at(const std::byte* p, std::size_t n) {
  cpu::current().sleep(sim::Picos{1'000'000});
  return {p, p + n};
}

TEST(KernelVerbs, ObjectsHaveUseCountsAndNoContext_S_OBJ_20_A_3) {
  KernelMachine m;
  m.run_in_kernel([&] {
    KernelObjects o(m);
    EXPECT_EQ(o.qp->ucontext, nullptr);
    EXPECT_EQ(o.pd->usecnt, 1u);
    EXPECT_EQ(o.cq->usecnt, 2u);
    EXPECT_EQ(kernel::ib_dealloc_pd(*o.pd), -EBUSY);
    EXPECT_EQ(kernel::ib_destroy_cq(*o.cq), -EBUSY);
    const kernel::Resources r = kernel::list_resources(*m.kernel);
    EXPECT_TRUE(r.ctx.empty());
    ASSERT_EQ(r.qp.size(), 1u);
    EXPECT_EQ(r.qp[0].owner.pid, 0u);
    EXPECT_EQ(r.qp[0].owner.comm, "test_ulp");
    ASSERT_EQ(r.cq.size(), 1u);
    EXPECT_EQ(r.cq[0].ctxn, 0u);
    o.destroy();
    EXPECT_TRUE(m.device.mkeys.empty());
    EXPECT_TRUE(m.device.qps.empty());
    EXPECT_TRUE(m.device.cqs.empty());
    EXPECT_EQ(m.kernel->kernel_dbrs().pages(), 0u);
    EXPECT_TRUE(kernel::list_resources(*m.kernel).pd.empty());
  });
}

TEST(KernelVerbs, ThePdsKeyCoversAllDmaAddresses) {
  KernelMachine m;
  m.run_in_kernel([&] {
    std::unique_ptr<kernel::Pd> local, global;
    kernel::Device& device = m.kernel->device();
    ASSERT_EQ(kernel::ib_alloc_kernel_pd(device, 0, m.consumer(), local), 0);
    ASSERT_EQ(kernel::ib_alloc_kernel_pd(device, kernel::IB_PD_UNSAFE_GLOBAL_RKEY, m.consumer(), global), 0);
    EXPECT_EQ(local->unsafe_global_rkey, 0u);
    EXPECT_EQ(global->unsafe_global_rkey, global->local_dma_lkey);
    for (const kernel::Pd* pd : {local.get(), global.get()}) {
      const std::byte* mkc = m.device.mkeys.at(pd->local_dma_lkey >> 8).data();
      const std::uint32_t remote = pd == global.get() ? 1 : 0;
      EXPECT_EQ(prm::get(mkc, prm::kMkcAccessMode), prm::kMkcModePa);
      EXPECT_EQ(prm::get(mkc, prm::kMkcLength64), 1u);
      EXPECT_EQ(prm::get(mkc, prm::kMkcPd), pd->pdn);
      EXPECT_EQ(prm::get(mkc, prm::kMkcLw), 1u);
      EXPECT_EQ(prm::get(mkc, prm::kMkcRr), remote);
      EXPECT_EQ(prm::get(mkc, prm::kMkcRw), remote);
    }
    EXPECT_EQ(kernel::ib_dealloc_pd(*local), 0);
    EXPECT_EQ(kernel::ib_dealloc_pd(*global), 0);
    EXPECT_TRUE(m.device.mkeys.empty());
  });
}

TEST(KernelVerbs, SizesLeaveRoomForAUmrInEachSendWqe) {
  KernelMachine m;
  m.run_in_kernel([&] {
    // 16 + 116 bytes before the data of an RC WQE: one SGE makes it 148, so three WQEBBs; 5 of them, rounded up, are 16.
    KernelObjects o(m, 5, 3, 1, 2);
    EXPECT_EQ(o.rings().sq.wqe_cnt, 16u);
    EXPECT_EQ(o.qp->cap.max_send_wr, 5u);
    EXPECT_EQ(o.qp->cap.max_send_sge, 3u);  // (192 - 132) / 16
    EXPECT_EQ(o.qp->cap.max_inline_data, 56u);
    EXPECT_EQ(o.rings().rq.wqe_shift, 5u);
    EXPECT_EQ(o.qp->cap.max_recv_wr, 4u);
    EXPECT_EQ(o.qp->cap.max_recv_sge, 2u);
    const std::byte* qpc = m.device.qps.at(o.qp->qpn).data();
    EXPECT_EQ(prm::get(qpc, prm::kQpcUserIndex), 0xffffffu);
    EXPECT_EQ(prm::get(qpc, prm::kQpcUarPage), m.kernel->uar().index);
    EXPECT_EQ(prm::get(qpc, prm::kQpcLogSqSize), 4u);
    EXPECT_EQ(prm::get64(qpc, prm::kQpcDbrAddr), o.rings().dbr.at.v);
    o.destroy();
  });
}

TEST(KernelVerbs, WhatIsNotBuiltIsRefused) {
  KernelMachine m;
  m.run_in_kernel([&] {
    KernelObjects o(m);
    kernel::QpInitAttr init;
    std::unique_ptr<kernel::Qp> qp;
    init.send_cq = o.cq.get();
    init.cap = {4, 4, 1, 1, 0};
    EXPECT_EQ(kernel::ib_create_qp(*o.pd, init, m.consumer(), nullptr, qp), -EINVAL);
    init.recv_cq = o.cq.get();
    init.qp_type = IBV_QPT_UD;
    EXPECT_EQ(kernel::ib_create_qp(*o.pd, init, m.consumer(), nullptr, qp), -EOPNOTSUPP);
    std::unique_ptr<kernel::Cq> cq;
    EXPECT_EQ(
        kernel::ib_create_cq(m.kernel->device(), {.cqe = 15, .comp_vector = 99, .flags = 0}, m.consumer(), nullptr, cq),
        -EINVAL);
    o.destroy();
  });
}

TEST(KernelVerbs, BytesOfASend_S_WQE_2) {
  KernelMachine m;
  m.run_in_kernel([&] {
    KernelObjects o(m);
    ibv_sge sge[2] = {{0x1122334455667788, 100, 0xabcd}, {0x10, 7, 0xef}};
    ibv_send_wr wr{};
    const ibv_send_wr* bad = nullptr;
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm_data = prm::be32(0xcafe);
    wr.sg_list = sge;
    wr.num_sge = 2;
    wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE;
    ASSERT_EQ(kernel::ib_post_send(*o.qp, &wr, &bad), 0);
    EXPECT_EQ(bytes_at(o.rings().sq.buf, 48), words({MLX5_OPCODE_SEND_IMM, o.qp->qpn << 8 | 3, 0x8a, 0xcafe, 100,
                                                     0xabcd, 0x11223344, 0x55667788, 7, 0xef, 0, 0x10}));
    EXPECT_EQ(bytes_at(o.rings().dbr.bytes + prm::kSndDbr, 4), words({1}));
    const FakeDevice::UarWrite& w = m.device.uar_writes.back();
    EXPECT_EQ(w.page, m.kernel->uar().index);
    EXPECT_EQ(w.offset, 0x800u);
    EXPECT_EQ(w.bytes, words({MLX5_OPCODE_SEND_IMM, o.qp->qpn << 8 | 3}));
    o.destroy();
  });
}

TEST(KernelVerbs, BytesOfWriteReadAndInlineAndTheOtherHalfOfTheRegister_S_BF_1) {
  KernelMachine m;
  m.run_in_kernel([&] {
    KernelObjects o(m, 4, 4, 1, 2, 20);
    auto* text = static_cast<char*>(m.kernel->space().alloc(64));
    std::memcpy(text, "twenty bytes of data", 20);
    ibv_sge plain{0x9000, 64, 0xab}, inlined{reinterpret_cast<std::uint64_t>(text), 20, 0};
    ibv_send_wr wr[2]{};
    const ibv_send_wr* bad = nullptr;
    wr[0].opcode = IBV_WR_RDMA_READ;
    wr[0].sg_list = &plain;
    wr[0].num_sge = 1;
    wr[0].wr.rdma = {0x123456789a, 0x77};
    wr[0].next = &wr[1];
    wr[1].opcode = IBV_WR_RDMA_WRITE;
    wr[1].sg_list = &inlined;
    wr[1].num_sge = 1;
    wr[1].send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    wr[1].wr.rdma = {0x2000, 0x88};
    ASSERT_EQ(kernel::ib_post_send(*o.qp, wr, &bad), 0);
    EXPECT_EQ(bytes_at(o.rings().sq.buf, 48),
              words({MLX5_OPCODE_RDMA_READ, o.qp->qpn << 8 | 3, 0, 0, 0x12, 0x3456789a, 0x77, 0, 64, 0xab, 0, 0x9000}));
    EXPECT_EQ(bytes_at(o.rings().sq.buf + 64, 36),
              words({0x100 | MLX5_OPCODE_RDMA_WRITE, o.qp->qpn << 8 | 4, 8, 0, 0, 0x2000, 0x88, 0, 0x80000014}));
    EXPECT_EQ(std::memcmp(o.rings().sq.buf + 64 + 36, text, 20), 0);
    wr[1].next = nullptr;
    ASSERT_EQ(kernel::ib_post_send(*o.qp, &wr[1], &bad), 0);
    cpu::current().sleep(sim::Picos{1'000'000});
    const auto& w = m.device.uar_writes;
    EXPECT_EQ(w[w.size() - 2].offset, 0x800u);  // one doorbell for a list, that of its last WQE
    EXPECT_EQ(w[w.size() - 2].bytes, words({0x100 | MLX5_OPCODE_RDMA_WRITE, o.qp->qpn << 8 | 4}));
    EXPECT_EQ(w.back().offset, 0x900u);
    EXPECT_EQ(bytes_at(o.rings().dbr.bytes + prm::kSndDbr, 4), words({3}));
    o.destroy();
  });
}

TEST(KernelVerbs, BytesOfAReceive_S_PR_1) {
  KernelMachine m;
  m.run_in_kernel([&] {
    KernelObjects o(m);
    ibv_sge sge{0x5000, 64, 0xab};
    ibv_recv_wr wr{};
    const ibv_recv_wr* bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ASSERT_EQ(kernel::ib_post_recv(*o.qp, &wr, &bad), 0);
    EXPECT_EQ(bytes_at(o.rings().rq.buf, 32), words({64, 0xab, 0, 0x5000, 0, prm::kInvalidLkey, 0, 0}));
    EXPECT_EQ(bytes_at(o.rings().dbr.bytes + prm::kRcvDbr, 4), words({1}));
    o.destroy();
  });
}

TEST(KernelVerbs, RefusedWorkRequestsAreNamed) {
  KernelMachine m;
  m.run_in_kernel([&] {
    KernelObjects o(m, 5, 4, 1, 2, 20);
    ibv_sge sge[4] = {{0x9000, 64, 1}, {0x9000, 64, 1}, {0x9000, 64, 1}, {0x9000, 64, 1}};
    ibv_send_wr wr{};
    const ibv_send_wr* bad = nullptr;
    wr.opcode = IBV_WR_SEND;
    wr.sg_list = sge;
    wr.num_sge = 4;
    EXPECT_EQ(kernel::ib_post_send(*o.qp, &wr, &bad), -ENOMEM);
    EXPECT_EQ(bad, &wr);
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_INLINE;
    sge[0].length = 1000;
    EXPECT_EQ(kernel::ib_post_send(*o.qp, &wr, &bad), -ENOMEM);
    wr.send_flags = 0;
    wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    EXPECT_EQ(kernel::ib_post_send(*o.qp, &wr, &bad), -EOPNOTSUPP);
    wr.opcode = static_cast<ibv_wr_opcode>(15);
    EXPECT_EQ(kernel::ib_post_send(*o.qp, &wr, &bad), -EINVAL);
    EXPECT_EQ(o.rings().sq.head, 0u);
    wr.opcode = IBV_WR_SEND;
    for (int i = 0; i < 5; ++i) EXPECT_EQ(kernel::ib_post_send(*o.qp, &wr, &bad), 0);
    EXPECT_EQ(kernel::ib_post_send(*o.qp, &wr, &bad), -ENOMEM);  // full
    ibv_recv_wr recv{};
    const ibv_recv_wr* bad_recv = nullptr;
    recv.sg_list = sge;
    recv.num_sge = 3;
    EXPECT_EQ(kernel::ib_post_recv(*o.qp, &recv, &bad_recv), -EINVAL);
    EXPECT_EQ(bad_recv, &recv);
    recv.num_sge = 1;
    for (int i = 0; i < 4; ++i) EXPECT_EQ(kernel::ib_post_recv(*o.qp, &recv, &bad_recv), 0);
    EXPECT_EQ(kernel::ib_post_recv(*o.qp, &recv, &bad_recv), -ENOMEM);
    o.destroy();
  });
}

TEST(KernelVerbs, CompletionsFreeSlotsAndCarryWhatTheCqeSays_S_CQE_4) {
  KernelMachine m;
  m.run_in_kernel([&] {
    KernelObjects o(m);
    ibv_sge sge{0x9000, 64, 1};
    ibv_send_wr wr{};
    const ibv_send_wr* bad = nullptr;
    wr.opcode = IBV_WR_SEND;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    for (wr.wr_id = 10; wr.wr_id < 13; ++wr.wr_id) ASSERT_EQ(kernel::ib_post_send(*o.qp, &wr, &bad), 0);
    ibv_recv_wr recv{};
    const ibv_recv_wr* bad_recv = nullptr;
    recv.wr_id = 50;
    ASSERT_EQ(kernel::ib_post_recv(*o.qp, &recv, &bad_recv), 0);
    std::array<ibv_wc, 4> wc{};
    EXPECT_EQ(kernel::ib_poll_cq(*o.cq, 4, wc.data()), 0);
    cpu::current().sync();
    m.complete(*o.cq, 0, KernelMachine::sent(o.qp->qpn, 1));  // of the second: the first was not signaled
    m.complete(*o.cq, 1, KernelMachine::received(o.qp->qpn, 64));
    m.complete(*o.cq, 2, KernelMachine::failed(KernelMachine::sent(o.qp->qpn, 2), MLX5_CQE_REQ_ERR, prm::kSynRnrRetry));
    ASSERT_EQ(kernel::ib_poll_cq(*o.cq, 4, wc.data()), 3);
    EXPECT_EQ(wc[0].wr_id, 11u);
    EXPECT_EQ(wc[0].opcode, IBV_WC_SEND);
    EXPECT_EQ(wc[1].wr_id, 50u);
    EXPECT_EQ(wc[1].opcode, IBV_WC_RECV);
    EXPECT_EQ(wc[1].byte_len, 64u);
    EXPECT_EQ(wc[2].wr_id, 12u);
    EXPECT_EQ(wc[2].status, IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_EQ(wc[2].vendor_err, 0x77u);
    EXPECT_EQ(o.rings().sq.tail, 3u);
    EXPECT_EQ(bytes_at(o.ring().dbr.bytes + prm::kCqSetCi, 4), words({3}));
    o.destroy();
  });
}

TEST(KernelVerbs, ArmingWritesRecordAndDoorbellAndReportsWhatWaits_S_CE_4_S_CE_20) {
  KernelMachine m;
  m.run_in_kernel([&] {
    KernelObjects o(m);
    EXPECT_EQ(kernel::ib_req_notify_cq(*o.cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS), 0);
    EXPECT_EQ(bytes_at(o.ring().dbr.bytes + prm::kCqArm, 4), words({0}));
    EXPECT_EQ(m.device.uar_writes.back().offset, 0x20u);
    EXPECT_EQ(m.device.uar_writes.back().bytes, words({0, o.cq->cqn}));
    m.complete(*o.cq, 0, KernelMachine::received(o.qp->qpn, 1));
    EXPECT_EQ(kernel::ib_req_notify_cq(*o.cq, IB_CQ_SOLICITED), 0);  // did not ask
    EXPECT_EQ(bytes_at(o.ring().dbr.bytes + prm::kCqArm, 4), words({0x01000000}));
    EXPECT_EQ(kernel::ib_req_notify_cq(*o.cq, IB_CQ_SOLICITED | IB_CQ_REPORT_MISSED_EVENTS), 1);
    o.destroy();
  });
}

TEST(KernelVerbs, WithoutTheReportTheDriverLeavesLateArmsToTheDevice) {
  kernel::KernelConfig config = default_config();
  config.verbs.report_missed_cqes = false;
  KernelMachine m(config);
  m.run_in_kernel([&] {
    KernelObjects o(m);
    m.complete(*o.cq, 0, KernelMachine::received(o.qp->qpn, 1));
    EXPECT_EQ(kernel::ib_req_notify_cq(*o.cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS), 0);
    o.destroy();
  });
}

TEST(KernelVerbs, ADestroyedQueuePairTakesItsCompletionsAlong_S_QP_46) {
  KernelMachine m;
  m.run_in_kernel([&] {
    KernelObjects o(m);
    kernel::QpInitAttr init;
    std::unique_ptr<kernel::Qp> second;
    init.send_cq = init.recv_cq = o.cq.get();
    init.cap = {4, 4, 1, 1, 0};
    ASSERT_EQ(kernel::ib_create_qp(*o.pd, init, m.consumer(), nullptr, second), 0);
    ibv_recv_wr recv{};
    const ibv_recv_wr* bad = nullptr;
    recv.wr_id = 1;
    ASSERT_EQ(kernel::ib_post_recv(*o.qp, &recv, &bad), 0);
    m.complete(*o.cq, 0, KernelMachine::received(second->qpn, 1));
    m.complete(*o.cq, 1, KernelMachine::received(o.qp->qpn, 2));
    m.complete(*o.cq, 2, KernelMachine::received(second->qpn, 3));
    ASSERT_EQ(kernel::ib_destroy_qp(*second), 0);
    std::array<ibv_wc, 4> wc{};
    ASSERT_EQ(kernel::ib_poll_cq(*o.cq, 4, wc.data()), 1);
    EXPECT_EQ(wc[0].byte_len, 2u);
    EXPECT_EQ(o.ring().cons_index, 3u);
    o.destroy();
  });
}

TEST(KernelVerbs, DoorbellRecordsShareAPage) {
  KernelMachine m;
  m.run_in_kernel([&] {
    kernel::KernelDbrPool& pool = m.kernel->kernel_dbrs();
    std::vector<kernel::KernelDbr> records;
    for (int i = 0; i < 65; ++i) records.push_back(pool.alloc(m.kernel->dma()));
    EXPECT_EQ(pool.pages(), 2u);
    EXPECT_EQ(records[1].bytes - records[0].bytes, 64);
    EXPECT_EQ(records[1].at.v - records[0].at.v, 64u);
    const std::byte* third = records[3].bytes;
    pool.free(m.kernel->dma(), records[3]);
    records[3] = pool.alloc(m.kernel->dma());
    EXPECT_EQ(records[3].bytes, third);
    for (auto& r : records) pool.free(m.kernel->dma(), r);
    EXPECT_EQ(pool.pages(), 0u);
  });
}

}  // namespace
}  // namespace test
