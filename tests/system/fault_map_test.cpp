// SPDX-License-Identifier: Apache-2.0
// The fault table of the reliable transport, a row per fault: statuses and vendor codes of both sides, the NAK on the cable,
// states, asynchronous events, and the order in which both queues are flushed.
#include <gtest/gtest.h>

#include <ostream>

#include "tests/system/inject.h"

namespace sys::test {
namespace {

using namespace sim::literals;
namespace wire = hca::wire;

constexpr std::uint32_t kPsn = 0x100;
constexpr int kLocal = IBV_ACCESS_LOCAL_WRITE;
constexpr int kAllRights = kLocal | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr std::uint64_t kCulprit = 1, kClientReceive = 50, kServerReceive = 100;

/// Status and vendor code of a completion.
struct Ending {
  ibv_wc_status status;
  std::uint32_t vendor;
  bool operator==(const Ending&) const = default;
};
void PrintTo(const Ending& e, std::ostream* out) {
  *out << ibv_wc_status_str(e.status) << ", vendor " << std::hex << e.vendor << std::dec;
}
constexpr Ending kFlushedSend{IBV_WC_WR_FLUSH_ERR, 0xf5}, kFlushedReceive{IBV_WC_WR_FLUSH_ERR, 0xf9};
const std::vector<Ending> kBothReceivesFlushed{kFlushedReceive, kFlushedReceive};

struct Trial {
  Pair& pair;
  End& client;
  Injector& inject;
  std::uint32_t server_qpn() const { return client.peer.qpn; }
};

struct Row {
  const char* name;
  std::function<void(Trial&)> provoke;  ///< posts the culprit
  Ending requester;
  std::vector<Ending> responder = kBothReceivesFlushed;  ///< what the server's receives end with
  std::uint8_t nak = 0;
  std::vector<ibv_event_type> events = {};  ///< at the server
  ibv_qp_state server_state = IBV_QPS_ERR;
  std::function<void(Pair&)> set_up = nullptr;
  std::function<void(Pair&, End&)> prepare = nullptr;  ///< at the server, before the connection is made
  std::function<void(End&)> receives = nullptr;        ///< at the server, instead of two good ones
};
void PrintTo(const Row& r, std::ostream* out) { *out << r.name; }

int post(End& e, ibv_wr_opcode opcode, std::uint64_t va, std::uint32_t rkey, std::uint32_t n = 64, unsigned flags = 0) {
  return e.post(kCulprit, opcode, {e.sge(0, n)}, va, rkey, flags);
}
int post_atomic(End& e, std::uint64_t va, std::uint32_t rkey) {
  ibv_sge sge = e.sge(0, 8);
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = kCulprit;
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.wr.atomic.remote_addr = va;
  wr.wr.atomic.rkey = rkey;
  return ibv_post_send(e.qp, &wr, &bad);
}
auto remote(ibv_wr_opcode opcode, std::uint64_t offset, std::uint32_t key_offset, std::uint32_t n = 64) {
  return [=](Trial& t) {
    EXPECT_EQ(post(t.client, opcode, t.client.peer.va + offset, t.client.peer.rkey + key_offset, n), 0);
  };
}
void atomic_to_peer(Trial& t) { EXPECT_EQ(post_atomic(t.client, t.client.peer.va, t.client.peer.rkey), 0); }
auto rights(int mr, int qp) {
  return [=](Pair& p) {
    p.options[1].mr_access = mr;
    p.options[1].qp_access = qp;
  };
}
auto send_with(std::function<ibv_sge(End&)> sge) {
  return [=](Trial& t) { EXPECT_EQ(t.client.send(kCulprit, {sge(t.client)}, 0), 0); };
}
auto read_into(std::function<ibv_sge(End&)> sge) {
  return [=](Trial& t) {
    EXPECT_EQ(t.client.post(kCulprit, IBV_WR_RDMA_READ, {sge(t.client)}, t.client.peer.va, t.client.peer.rkey, 0), 0);
  };
}
ibv_sge wrong_key(End& e) {
  ibv_sge s = e.sge(0, 64);
  ++s.lkey;
  return s;
}
ibv_sge beyond(End& e) { return e.sge(e.o.bytes - 63, 64); }
ibv_sge foreign(End& e) {
  ibv_mr* mr = ibv_reg_mr(ibv_alloc_pd(e.context), e.buffer, 4096, kLocal);
  return {e.va(), 64, mr->lkey};
}
void send_to_peer(Trial& t) { EXPECT_EQ(t.client.send(kCulprit, 0, 64, 0), 0); }
void short_timeout(Pair& p) {
  p.options[0].timeout = 8;
  p.options[0].retry = 1;
}
auto receive_into(std::function<ibv_sge(End&)> sge) {
  return [=](End& e) {
    ASSERT_EQ(e.receive(kServerReceive, {sge(e)}), 0);
    ASSERT_EQ(e.receive(kServerReceive + 1, 4096, 64), 0);
  };
}
auto lose(std::vector<std::uint8_t> opcodes) {
  return [=](Pair& p) {
    for (const std::uint8_t o : opcodes) p.lose(o);
  };
}
// Frames in place of the culprit's own, which are lost on the way.
struct Forged {
  std::uint8_t operation;
  std::uint32_t payload, reth_length = 0;
};
auto forge(ibv_wr_opcode opcode, std::uint32_t n, std::vector<Forged> frames) {
  return [=](Trial& t) {
    EXPECT_EQ(post(t.client, opcode, t.client.peer.va, t.client.peer.rkey, n), 0);
    t.client.thread().sleep(20_us);
    std::uint32_t psn = kPsn;
    for (const Forged& f : frames) {
      wire::Headers h = rc_headers(f.operation, t.server_qpn(), psn++);
      h.reth = {t.client.peer.va, t.client.peer.rkey, f.reth_length};
      t.inject.send(1, h, f.payload);
    }
  };
}
// An answer that the server did not send. The culprit's request is lost on the way.
auto forge_answer(ibv_wr_opcode opcode, std::uint8_t operation, std::uint32_t n) {
  return [=](Trial& t) {
    EXPECT_EQ(post(t.client, opcode, t.client.peer.va, t.client.peer.rkey, 64), 0);
    t.client.thread().sleep(20_us);
    wire::Headers h = rc_headers(operation, t.client.qp->qp_num, kPsn);
    h.aeth = {wire::ack_syndrome(), 1};
    t.inject.send(0, h, n);
  };
}
// Takes the translations of the server's last region, of `pages` pages, away behind the back of the device.
void unmap(Host& host, std::uint64_t pages) {
  kernel::DmaMapper& dma = host.kernel().dma();
  kernel::DmaBuffer below = dma.alloc(7 * memory::kPageSize);
  kernel::DmaMapping region;
  for (std::uint64_t i = 0; i < pages; ++i)
    region.pages.push_back(below.mapping.pages.front() + (7 + i) * memory::kPageSize);
  dma.unmap(region);
}

constexpr Ending kRemoteAccess{IBV_WC_REM_ACCESS_ERR, 0x88}, kRemoteInvalid{IBV_WC_REM_INV_REQ_ERR, 0x8a},
    kRemoteOperation{IBV_WC_REM_OP_ERR, 0x89}, kLocalProtection{IBV_WC_LOC_PROT_ERR, 0x52},
    kRetryExceeded{IBV_WC_RETRY_EXC_ERR, 0x81}, kBadResponse{IBV_WC_BAD_RESP_ERR, 0x70},
    kLocalOperation{IBV_WC_LOC_QP_OP_ERR, 0x61};
const std::vector<ibv_event_type> kAccessEvent{IBV_EVENT_QP_ACCESS_ERR}, kRequestEvent{IBV_EVENT_QP_REQ_ERR},
    kFatalEvent{IBV_EVENT_QP_FATAL};

std::vector<Row> rows() {
  std::vector<Row> all;
  const auto responder_fault = [&](const char* name, std::function<void(Trial&)> provoke, Ending ending,
                                   std::uint8_t nak, const std::vector<ibv_event_type>& events) -> Row& {
    return all.emplace_back(
        Row{.name = name, .provoke = std::move(provoke), .requester = ending, .nak = nak, .events = events});
  };
  const auto requester_fault = [&](const char* name, std::function<void(Trial&)> provoke, Ending ending) -> Row& {
    return all.emplace_back(Row{.name = name,
                                .provoke = std::move(provoke),
                                .requester = ending,
                                .responder = {},
                                .server_state = IBV_QPS_RTS});
  };

  // Keys, ranges and rights of a remote region
  responder_fault("S_ERR_1_unknown_key", remote(IBV_WR_RDMA_WRITE, 0, 0x4000'00), kRemoteAccess, 0x62, kAccessEvent);
  responder_fault("S_ERR_1_wrong_variant", remote(IBV_WR_RDMA_READ, 0, 1), kRemoteAccess, 0x62, kAccessEvent);
  responder_fault("S_ERR_1_freed_key", remote(IBV_WR_RDMA_WRITE, 0, 0), kRemoteAccess, 0x62, kAccessEvent).prepare =
      [](Pair&, End& e) {
        ibv_mr* gone = ibv_reg_mr(e.pd, e.buffer, 4096, kAllRights);
        static ibv_mr what_it_was;
        what_it_was = *gone;
        ASSERT_EQ(ibv_dereg_mr(gone), 0);
        e.mr = &what_it_was;
      };
  all.back().receives = [](End&) {};
  all.back().responder = {};
  responder_fault("S_ERR_1_foreign_domain", remote(IBV_WR_RDMA_WRITE, 0, 0), kRemoteAccess, 0x62, kAccessEvent)
      .prepare = [](Pair&, End& e) { e.mr = ibv_reg_mr(ibv_alloc_pd(e.context), e.buffer, e.o.bytes, kAllRights); };
  responder_fault("S_ERR_2_before_region", remote(IBV_WR_RDMA_WRITE, ~0ULL, 0), kRemoteAccess, 0x62, kAccessEvent);
  responder_fault("S_ERR_2_beyond_region", remote(IBV_WR_RDMA_READ, (64 << 10) - 63, 0), kRemoteAccess, 0x62,
                  kAccessEvent);
  responder_fault("S_ERR_3_no_remote_write", remote(IBV_WR_RDMA_WRITE, 0, 0), kRemoteAccess, 0x62, kAccessEvent)
      .set_up = rights(kAllRights & ~IBV_ACCESS_REMOTE_WRITE, kAllRights);
  responder_fault("S_ERR_3_no_remote_read", remote(IBV_WR_RDMA_READ, 0, 0), kRemoteAccess, 0x62, kAccessEvent).set_up =
      rights(kAllRights & ~IBV_ACCESS_REMOTE_READ, kAllRights);
  responder_fault("S_ERR_3_no_remote_atomic", atomic_to_peer, kRemoteAccess, 0x62, kAccessEvent).set_up =
      rights(kAllRights & ~IBV_ACCESS_REMOTE_ATOMIC, kAllRights);

  // What the QP does not allow
  responder_fault("S_ERR_4_write", remote(IBV_WR_RDMA_WRITE, 0, 0), kRemoteInvalid, 0x61, kAccessEvent).set_up =
      rights(kAllRights, kAllRights & ~IBV_ACCESS_REMOTE_WRITE);
  responder_fault("S_ERR_4_read", remote(IBV_WR_RDMA_READ, 0, 0), kRemoteInvalid, 0x61, kAccessEvent).set_up =
      rights(kAllRights, kAllRights & ~IBV_ACCESS_REMOTE_READ);
  responder_fault("S_ERR_4_atomic", atomic_to_peer, kRemoteInvalid, 0x61, kAccessEvent).set_up =
      rights(kAllRights, kAllRights & ~IBV_ACCESS_REMOTE_ATOMIC);
  responder_fault("S_ERR_4_write_as_request_error", remote(IBV_WR_RDMA_WRITE, 0, 0), kRemoteInvalid, 0x61,
                  kRequestEvent)
      .set_up = [](Pair& p) {
    rights(kAllRights, kAllRights & ~IBV_ACCESS_REMOTE_WRITE)(p);
    p.scenario.hosts[1].hca.transport.forbidden_event = hca::ForbiddenEvent::request_error;
  };

  // Requests that break the rules of the protocol
  responder_fault("S_ERR_5_middle_without_first", forge(IBV_WR_SEND, 64, {{wire::kSendMiddle, 1024}}), kRemoteInvalid,
                  0x61, kRequestEvent)
      .set_up = lose({wire::kSendOnly});
  responder_fault("S_ERR_5_write_inside_send",
                  forge(IBV_WR_SEND, 2048, {{wire::kSendFirst, 1024}, {wire::kWriteMiddle, 1024}}), kRemoteInvalid,
                  0x61, {})
      .set_up = lose({wire::kSendFirst, wire::kSendLast});
  all.back().responder = {{IBV_WC_REM_INV_REQ_ERR, 0x8a}, kFlushedReceive};
  responder_fault(
      "S_ERR_5_reserved_opcode",
      [](Trial& t) {
        send_to_peer(t);
        t.client.thread().sleep(20_us);
        t.inject.send_reserved(1, 0x1F, rc_headers(wire::kSendOnly, t.server_qpn(), kPsn));
      },
      kRemoteInvalid, 0x61, kRequestEvent)
      .set_up = lose({wire::kSendOnly});
  responder_fault("S_ERR_5_first_that_is_not_full", forge(IBV_WR_SEND, 64, {{wire::kSendFirst, 64}}), kRemoteInvalid,
                  0x61, kRequestEvent)
      .set_up = lose({wire::kSendOnly});
  responder_fault("S_ERR_6_write_shorter_than_said", forge(IBV_WR_RDMA_WRITE, 64, {{wire::kWriteOnly, 64, 100}}),
                  kRemoteInvalid, 0x61, kAccessEvent)
      .set_up = lose({wire::kWriteOnly});
  responder_fault("S_ERR_6_write_longer_than_said",
                  forge(IBV_WR_RDMA_WRITE, 2048, {{wire::kWriteFirst, 1024, 1500}, {wire::kWriteLast, 1000}}),
                  kRemoteInvalid, 0x61, kAccessEvent)
      .set_up = lose({wire::kWriteFirst, wire::kWriteLast});
  responder_fault(
      "S_ERR_7_misaligned_atomic",
      [](Trial& t) { EXPECT_EQ(post_atomic(t.client, t.client.peer.va + 4, t.client.peer.rkey), 0); }, kRemoteInvalid,
      0x61, kAccessEvent);
  // The first READ is still being answered when the second arrives; the data of the first come before the NAK.
  responder_fault(
      "S_ERR_8_more_reads_than_agreed_A_58",
      [](Trial& t) {
        EXPECT_EQ(t.client.post(0, IBV_WR_RDMA_READ, {t.client.sge(0, 32768)}, t.client.peer.va, t.client.peer.rkey, 0),
                  0);
        remote(IBV_WR_RDMA_READ, 0, 0)(t);
      },
      kRemoteInvalid, 0x61, kAccessEvent)
      .set_up = [](Pair& p) { p.options[1].dest_rd_atomic = 1; };

  // Faults of a receive WQE
  const auto receive_fault = [&](const char* name, std::uint32_t n, std::function<void(End&)> receives,
                                 Ending requester, std::uint8_t nak, Ending receive) {
    Row& r =
        responder_fault(name, [n](Trial& t) { EXPECT_EQ(t.client.send(kCulprit, 0, n, 0), 0); }, requester, nak, {});
    r.receives = std::move(receives);
    r.responder = {receive, kFlushedReceive};
  };
  constexpr Ending kTooShort{IBV_WC_LOC_LEN_ERR, 0x63}, kSegmentFault{IBV_WC_LOC_PROT_ERR, 0x51};
  receive_fault("S_ERR_9_send_longer_than_receive", 2048, receive_into([](End& e) { return e.sge(0, 1024); }),
                kRemoteInvalid, 0x61, kTooShort);
  receive_fault("S_ERR_9_receive_without_segment", 1, receive_into([](End& e) { return e.sge(0, 0); }), kRemoteInvalid,
                0x61, kTooShort);
  receive_fault("S_ERR_10_wrong_key", 64, receive_into(wrong_key), kRemoteOperation, 0x63, kSegmentFault);
  receive_fault("S_ERR_10_beyond_region", 64, receive_into(beyond), kRemoteOperation, 0x63, kSegmentFault);
  receive_fault("S_ERR_10_foreign_domain_A_55", 64, receive_into(foreign), kRemoteOperation, 0x63, kSegmentFault);
  receive_fault("S_ERR_10_region_not_writable", 64, receive_into([](End& e) {
                  ibv_mr* mr = ibv_reg_mr(e.pd, e.buffer, 4096, 0);
                  return ibv_sge{e.va(), 64, mr->lkey};
                }),
                kRemoteOperation, 0x63, kSegmentFault);
  receive_fault("S_ERR_10_deregistered_key_A_55", 64, receive_into([](End& e) {
                  ibv_mr* mr = ibv_reg_mr(e.pd, e.buffer, 4096, kLocal);
                  const ibv_sge s{e.va(), 64, mr->lkey};
                  EXPECT_EQ(ibv_dereg_mr(mr), 0);
                  return s;
                }),
                kRemoteOperation, 0x63, kSegmentFault);

  // The responder's device cannot read host memory
  responder_fault("S_ERR_11_read_of_unmapped_memory", remote(IBV_WR_RDMA_READ, 0, 0), kRemoteOperation, 0x63,
                  kFatalEvent)
      .prepare = [](Pair& p, End& e) {
    e.mr = ibv_reg_mr(e.pd, e.buffer, 3 * memory::kPageSize, kAllRights);
    unmap(p.cluster->host(1), 3);
  };
  all.back().receives = [](End&) {};
  all.back().responder = {};

  // So many entries that the ring has pages of its own, and has been mapped last.
  responder_fault("S_ERR_11_unreadable_receive_queue", send_to_peer, kRemoteOperation, 0x63, kFatalEvent).prepare =
      [](Pair& p, End& e) {
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = e.cq;
        init.qp_type = IBV_QPT_RC;
        init.cap = {16, 1024, 2, 2, 0};
        ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
        const std::size_t before = e.process_.space.pinned_pages();
        e.qp = ibv_create_qp(e.pd, &init);
        ASSERT_NE(e.qp, nullptr);
        unmap(p.cluster->host(1), e.process_.space.pinned_pages() - before);
      };
  all.back().responder = {};

  // No receive, no answer
  requester_fault("S_ERR_12_no_receive", send_to_peer, {IBV_WC_RNR_RETRY_EXC_ERR, 0x87}).set_up = [](Pair& p) {
    p.options[0].rnr_retry = 2;
    p.options[1].min_rnr_timer = 1;
  };
  all.back().receives = [](End&) {};
  requester_fault("S_ERR_13_peer_in_reset", send_to_peer, kRetryExceeded).set_up = [](Pair& p) {
    short_timeout(p);
    p.options[1].connect = false;
  };
  all.back().receives = [](End&) {};
  all.back().server_state = IBV_QPS_RESET;
  requester_fault("S_ERR_13_peer_in_error", send_to_peer, kRetryExceeded).set_up = short_timeout;
  all.back().receives = [](End& e) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE), 0);
  };
  all.back().server_state = IBV_QPS_ERR;
  requester_fault("S_ERR_13_link_down", send_to_peer, kRetryExceeded).set_up = [](Pair& p) {
    short_timeout(p);
    p.scenario.fabric.link.impairment.drop = 1;
  };

  // Faults that the requester finds itself
  requester_fault("S_ERR_14_wrong_key", send_with(wrong_key), kLocalProtection);
  requester_fault("S_ERR_14_beyond_region", send_with(beyond), kLocalProtection);
  requester_fault("S_ERR_14_foreign_domain", send_with(foreign), kLocalProtection);
  requester_fault(
      "S_ERR_14_in_the_second_packet",
      [](Trial& t) {
        EXPECT_EQ(t.client.send(kCulprit, {t.client.sge(0, 1024), wrong_key(t.client)}, 0), 0);
      },
      kLocalProtection);
  requester_fault(
      "S_ERR_14_unmapped_memory",
      [](Trial& t) {
        End& e = t.client;
        ibv_mr* mr = ibv_reg_mr(e.pd, e.buffer, 3 * memory::kPageSize, kLocal);
        unmap(t.pair.cluster->host(0), 3);
        EXPECT_EQ(e.send(kCulprit, {ibv_sge{e.va(), 5000, mr->lkey}}, 0), 0);
      },
      kLocalProtection);
  // The requests behind it have been executed by the time at which the data come.
  const std::vector<Ending> both_used{{IBV_WC_SUCCESS, 0}, {IBV_WC_SUCCESS, 0}};
  requester_fault("S_ERR_15_wrong_key", read_into(wrong_key), kLocalProtection).responder = both_used;
  requester_fault("S_ERR_15_region_not_writable", read_into([](End& e) {
                    ibv_mr* mr = ibv_reg_mr(e.pd, e.buffer, 4096, 0);
                    return ibv_sge{e.va(), 64, mr->lkey};
                  }),
                  kLocalProtection)
      .responder = both_used;
  requester_fault("S_ERR_15_as_access_error", read_into(wrong_key), {IBV_WC_LOC_ACCESS_ERR, 0x52}).set_up =
      [](Pair& p) { p.scenario.hosts[0].hca.transport.result_fault = hca::ResultFault::access_error; };
  all.back().responder = both_used;
  requester_fault(
      "S_ERR_16_inline_read",
      [](Trial& t) {
        End& e = t.client;
        EXPECT_EQ(post(e, IBV_WR_RDMA_READ, e.peer.va, e.peer.rkey, 16, IBV_SEND_INLINE), 0);
      },
      kLocalOperation)
      .set_up = [](Pair& p) { p.options[0].inline_bytes = 64; };
  requester_fault("S_ERR_16_read_without_rd_atomic", remote(IBV_WR_RDMA_READ, 0, 0), kLocalOperation).set_up =
      [](Pair& p) { p.options[0].rd_atomic = 0; };
  requester_fault("S_ERR_17_message_too_long", [](Trial& t) { EXPECT_EQ(t.client.send(kCulprit, 0, 4097, 0), 0); },
                  {IBV_WC_LOC_LEN_ERR, 0x62})
      .set_up = [](Pair& p) { p.scenario.hosts[0].hca.caps.log_max_msg = 12; };

  // Answers that do not fit the request
  requester_fault("S_ERR_18_read_data_for_a_send", forge_answer(IBV_WR_SEND, wire::kReadResponseOnly, 64), kBadResponse)
      .set_up = lose({wire::kSendOnly});
  requester_fault("S_ERR_18_read_data_too_short", forge_answer(IBV_WR_RDMA_READ, wire::kReadResponseOnly, 60),
                  kBadResponse)
      .set_up = lose({wire::kReadRequest});
  requester_fault("S_ERR_18_read_data_that_go_on", forge_answer(IBV_WR_RDMA_READ, wire::kReadResponseMiddle, 64),
                  kBadResponse)
      .set_up = lose({wire::kReadRequest});
  requester_fault("S_ERR_18_atomic_result_for_a_read", forge_answer(IBV_WR_RDMA_READ, wire::kAtomicAcknowledge, 0),
                  kBadResponse)
      .set_up = lose({wire::kReadRequest});

  // No fault at all: software moves the QP
  requester_fault(
      "S_ERR_23_moved_to_error_by_software",
      [](Trial& t) {
        send_to_peer(t);
        t.client.thread().sleep(20_us);
        ibv_qp_attr a{};
        a.qp_state = IBV_QPS_ERR;
        ASSERT_EQ(ibv_modify_qp(t.client.qp, &a, IBV_QP_STATE), 0);
      },
      kFlushedSend);
  all.back().receives = [](End&) {};
  return all;
}

std::vector<ibv_wc> drain(End& e) {
  std::vector<ibv_wc> all;
  for (ibv_wc wc{}; ibv_poll_cq(e.cq, 1, &wc) == 1;) all.push_back(wc);
  return all;
}

class FaultMap : public testing::TestWithParam<Row> {};
TEST_P(FaultMap, BothSidesEndAsTheTableSays) {
  const Row& row = GetParam();
  Pair p;
  for (HostConfig& h : p.scenario.hosts) h.iommu.mode = iommu::Mode::translated;
  for (EndOptions& o : p.options) o.mr_access = o.qp_access = kAllRights;
  if (row.set_up) row.set_up(p);
  Injector inject(p);
  std::uint32_t client_qpn = 0;
  p.run(
      [&](End& e) {
        client_qpn = e.qp->qp_num;
        ASSERT_EQ(e.receive(kClientReceive, 0, 64), 0);
        Trial trial{p, e, inject};
        e.meet("receives are posted");
        row.provoke(trial);
        for (const std::uint64_t id : {2, 3}) ASSERT_EQ(e.send(id, 0, 8, 0), 0);
        std::vector<Ending> sends, receives;
        std::vector<std::uint64_t> ids;
        for (const ibv_wc& wc : e.wait(4)) {
          (wc.wr_id == kClientReceive ? receives : sends).push_back({wc.status, wc.vendor_err});
          if (wc.wr_id != kClientReceive) ids.push_back(wc.wr_id);
        }
        EXPECT_EQ(sends, (std::vector<Ending>{row.requester, kFlushedSend, kFlushedSend}));
        EXPECT_EQ(ids, (std::vector<std::uint64_t>{kCulprit, 2, 3})) << "in posting order, S-ERR-30";
        EXPECT_EQ(receives, (std::vector<Ending>{kFlushedReceive}));
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
        e.thread().sleep(200_us);
        EXPECT_TRUE(drain(e).empty()) << "one completion per WR, S-ERR-31";
        EXPECT_TRUE(e.events().empty()) << "a requester's fault is told by completions alone, S-AE-4";
        e.meet("failed");
      },
      [&](End& e) {
        if (row.receives) {
          row.receives(e);
        } else {
          for (const std::uint64_t i : {0, 1}) ASSERT_EQ(e.receive(kServerReceive + i, 4096 * i, 4096), 0);
        }
        e.meet("receives are posted");
        e.meet("failed");
        std::vector<Ending> got;
        std::uint64_t id = kServerReceive;
        for (const ibv_wc& wc : drain(e)) {
          got.push_back({wc.status, wc.vendor_err});
          EXPECT_EQ(wc.wr_id, id++) << "in posting order, S-ERR-30";
        }
        EXPECT_EQ(got, row.responder);
        EXPECT_EQ(e.state(), row.server_state);
        EXPECT_EQ(e.events(), row.events);
      },
      row.prepare ? Pair::Program([&](End& e) { row.prepare(p, e); }) : nullptr);
  std::vector<std::uint8_t> naks;
  for (const SentFrame& f : p.sent(client_qpn, {wire::kAcknowledge}))
    if (wire::aeth_kind(f.syndrome) == wire::AethKind::nak) naks.push_back(f.syndrome);
  if (row.nak == 0) EXPECT_TRUE(naks.empty());
  else EXPECT_EQ(naks, (std::vector<std::uint8_t>{row.nak})) << "told once, S-RC-26";
}
// The requester's queue itself cannot be read: no completion can tell of its WQEs (S-AE-2).
TEST(FaultOfAQueue, UnreadableSendQueueIsFatal_S_ERR_11) {
  Pair p;
  for (HostConfig& h : p.scenario.hosts) {
    h.iommu.mode = iommu::Mode::translated;
    h.hca.uar.bf_buffers = 0;  // the WQE must be fetched
  }
  p.run(
      [&](End& e) {
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = e.cq;
        init.qp_type = IBV_QPT_RC;
        init.cap = {1024, 16, 2, 2, 0};
        ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
        const std::size_t before = e.process_.space.pinned_pages();
        e.qp = ibv_create_qp(e.pd, &init);
        ASSERT_NE(e.qp, nullptr);
        e.go_to_rts();
        unmap(p.cluster->host(0), e.process_.space.pinned_pages() - before);
        ASSERT_EQ(e.send(1, 0, 64), 0);
        e.thread().sleep(200_us);
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
        EXPECT_EQ(e.events(), kFatalEvent);
        EXPECT_TRUE(drain(e).empty());
      },
      [](End& e) { EXPECT_EQ(e.state(), IBV_QPS_RTS); });
}

INSTANTIATE_TEST_SUITE_P(Rc, FaultMap, testing::ValuesIn(rows()),
                         [](const auto& i) { return std::string(i.param.name); });

}  // namespace
}  // namespace sys::test
