/* SPDX-License-Identifier: Apache-2.0 */
/* UC or UD ping-pong in the shape of the well-known example programs: two processes bounce a message and poll the CQ. A
 * plain verbs program; only the exchange of addresses differs from one that uses a socket.
 *
 * Arguments: uc or ud, message bytes, iterations, GID index. Returns 0 on success. */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_frontend/exchange.h"

enum { RECV_WRID = 1, SEND_WRID = 2, RX_DEPTH = 16, GRH = 40, QKEY = 0x11111111 };

struct address {
  uint32_t qpn, psn;
  union ibv_gid gid;
};

struct pingpong {
  int ud;
  size_t size;
  int iters, gid_index;
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_mr* mr;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  struct ibv_ah* ah;
  char* buf; /* the message; for UD behind the area of the network header */
  struct address mine, peer;
};

static int fail(const char* what) {
  fprintf(stderr, "%s failed\n", what);
  return 1;
}

static int create(struct pingpong* p) {
  int n = 0;
  struct ibv_device** list = ibv_get_device_list(&n);

  if (!list || n == 0) return fail("ibv_get_device_list");
  p->context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  if (!p->context) return fail("ibv_open_device");
  p->pd = ibv_alloc_pd(p->context);
  p->buf = malloc(p->size + GRH);
  if (!p->pd || !p->buf) return fail("ibv_alloc_pd");
  memset(p->buf, 0x7b, p->size + GRH);
  p->mr = ibv_reg_mr(p->pd, p->buf, p->size + GRH, IBV_ACCESS_LOCAL_WRITE);
  p->cq = ibv_create_cq(p->context, RX_DEPTH + 1, NULL, NULL, 0);
  if (!p->mr || !p->cq) return fail("ibv_create_cq");

  struct ibv_qp_init_attr init = {
      .send_cq = p->cq,
      .recv_cq = p->cq,
      .cap = {.max_send_wr = 1, .max_recv_wr = RX_DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = p->ud ? IBV_QPT_UD : IBV_QPT_UC,
  };

  p->qp = ibv_create_qp(p->pd, &init);
  if (!p->qp) return fail("ibv_create_qp");

  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

  if (ibv_modify_qp(p->qp, &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (p->ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)))
    return fail("INIT");
  p->mine.qpn = p->qp->qp_num;
  p->mine.psn = (p->mine.qpn * 2654435761u) & 0xffffff;
  return ibv_query_gid(p->context, 1, p->gid_index, &p->mine.gid) ? fail("ibv_query_gid") : 0;
}

static int connect_qp(struct pingpong* p) {
  struct ibv_qp_attr a = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = IBV_MTU_1024,
      .dest_qp_num = p->peer.qpn,
      .rq_psn = p->peer.psn,
      .ah_attr = {.is_global = 1,
                  .port_num = 1,
                  .grh = {.dgid = p->peer.gid, .sgid_index = (uint8_t)p->gid_index, .hop_limit = 64}},
  };

  if (ibv_modify_qp(p->qp, &a,
                    IBV_QP_STATE | (p->ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)))
    return fail("RTR");
  if (p->ud) {
    p->ah = ibv_create_ah(p->pd, &a.ah_attr);
    if (!p->ah) return fail("ibv_create_ah");
  }
  a.qp_state = IBV_QPS_RTS;
  a.sq_psn = p->mine.psn;
  return ibv_modify_qp(p->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN) ? fail("RTS") : 0;
}

static int post_recv(struct pingpong* p) {
  struct ibv_sge sge = {.addr = (uintptr_t)p->buf + (p->ud ? 0 : GRH),
                        .length = (uint32_t)p->size + (p->ud ? GRH : 0),
                        .lkey = p->mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = RECV_WRID, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;

  return ibv_post_recv(p->qp, &wr, &bad);
}

static int post_send(struct pingpong* p, int round) {
  struct ibv_sge sge = {.addr = (uintptr_t)p->buf + GRH, .length = (uint32_t)p->size, .lkey = p->mr->lkey};
  struct ibv_send_wr wr = {
      .wr_id = SEND_WRID, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
  struct ibv_send_wr* bad;

  if (p->ud) {
    wr.wr.ud.ah = p->ah;
    wr.wr.ud.remote_qpn = p->peer.qpn;
    wr.wr.ud.remote_qkey = QKEY;
  }
  p->buf[GRH] = (char)round;
  return ibv_post_send(p->qp, &wr, &bad);
}

static int run(struct pingpong* p, int sends_first) {
  int sent = 0, received = 0, pending = RECV_WRID;
  char here = 0, there = 0;

  for (int i = 0; i < RX_DEPTH; ++i)
    if (post_recv(p)) return fail("ibv_post_recv");
  /* Nobody sends before the other side has posted its receives: nothing would repeat the message. */
  if (rdmasim_exchange("ready", &here, &there, 1)) return fail("exchange");
  if (sends_first) {
    if (post_send(p, 0)) return fail("ibv_post_send");
    pending |= SEND_WRID;
  }
  while (received < p->iters || sent < p->iters) {
    struct ibv_wc wc;
    int n = ibv_poll_cq(p->cq, 1, &wc);

    if (n < 0) return fail("ibv_poll_cq");
    if (n == 0) continue;
    if (wc.status != IBV_WC_SUCCESS) return fail(ibv_wc_status_str(wc.status));
    if (wc.wr_id == SEND_WRID) {
      ++sent;
    } else {
      if (wc.byte_len != p->size + (p->ud ? GRH : 0)) return fail("length");
      if (p->ud && (wc.src_qp != p->peer.qpn || !(wc.wc_flags & IBV_WC_GRH))) return fail("source");
      if (p->buf[GRH] != (char)received) return fail("payload");
      ++received;
      if (post_recv(p)) return fail("ibv_post_recv");
    }
    pending &= ~(int)wc.wr_id;
    if (sent < p->iters && !pending) {
      if (post_send(p, sent)) return fail("ibv_post_send");
      pending = RECV_WRID | SEND_WRID;
    }
  }
  return 0;
}

static int destroy(struct pingpong* p) {
  if (p->ah && ibv_destroy_ah(p->ah)) return fail("ibv_destroy_ah");
  if (ibv_destroy_qp(p->qp) || ibv_destroy_cq(p->cq) || ibv_dereg_mr(p->mr) || ibv_dealloc_pd(p->pd))
    return fail("destruction");
  free(p->buf);
  return ibv_close_device(p->context);
}

int main(int argc, char** argv) {
  if (argc != 5) return fail("usage: uc|ud BYTES ITERATIONS GID_INDEX");

  struct pingpong p = {.ud = !strcmp(argv[1], "ud"),
                       .size = strtoul(argv[2], NULL, 0),
                       .iters = atoi(argv[3]),
                       .gid_index = atoi(argv[4])};

  if (create(&p)) return 1;
  if (rdmasim_exchange("address", &p.mine, &p.peer, sizeof p.mine)) return fail("exchange");
  if (connect_qp(&p)) return 1;
  int order = memcmp(&p.mine, &p.peer, sizeof p.mine);

  if (run(&p, order > 0)) return 1;
  return destroy(&p);
}
