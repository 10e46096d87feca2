/* SPDX-License-Identifier: Apache-2.0 */
/* RC ping-pong in the shape of the well-known example program: two processes bounce a message, polling the CQ or sleeping
 * on its completion channel. A plain verbs program; only the exchange of addresses differs from one that uses a socket.
 *
 * Options: -s SIZE message bytes, -n ITERS, -r DEPTH receives kept posted, -m MTU in bytes, -g GID index, -e events,
 * -p events by poll(2), -E events by edge-triggered epoll(7), both on a channel that does not block,
 * -c check the payload, -N builders instead of ibv_post_send, -t TAG of the exchange. Returns 0 on success. */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "verbs_frontend/exchange.h"

enum { RECV_WRID = 1, SEND_WRID = 2 };

struct options {
  size_t size;
  int iters, rx_depth, mtu, gid_index, use_event, use_poll, use_epoll, validate, use_builders;
  const char* tag;
};

struct address {
  uint32_t lid, qpn, psn;
  union ibv_gid gid;
};

struct pingpong {
  struct ibv_context* context;
  struct ibv_comp_channel* channel;
  struct ibv_pd* pd;
  struct ibv_mr* mr;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  struct ibv_qp_ex* qpx;
  char* buf;
  struct ibv_port_attr port;
  int pending, epfd;
  unsigned unacked;
};

static enum ibv_mtu mtu_of(int bytes) {
  switch (bytes) {
    case 256:
      return IBV_MTU_256;
    case 512:
      return IBV_MTU_512;
    case 1024:
      return IBV_MTU_1024;
    case 2048:
      return IBV_MTU_2048;
    default:
      return IBV_MTU_4096;
  }
}

static int parse(int argc, char** argv, struct options* o) {
  *o = (struct options){.size = 4096, .iters = 1000, .rx_depth = 50, .mtu = 1024, .gid_index = 0, .tag = "pingpong"};
  for (int i = 1; i < argc; ++i) {
    const char* a = argv[i];
    const char* v = i + 1 < argc ? argv[i + 1] : NULL;

    if (!strcmp(a, "-e")) {
      o->use_event = 1;
      continue;
    }
    if (!strcmp(a, "-p") || !strcmp(a, "-E")) {
      o->use_event = 1;
      o->use_poll = a[1] == 'p';
      o->use_epoll = a[1] == 'E';
      continue;
    }
    if (!strcmp(a, "-c")) {
      o->validate = 1;
      continue;
    }
    if (!strcmp(a, "-N")) {
      o->use_builders = 1;
      continue;
    }
    if (a[0] != '-' || a[1] == '\0' || v == NULL) {
      fprintf(stderr, "bad option %s\n", a);
      return 1;
    }
    ++i;
    switch (a[1]) {
      case 's':
        o->size = strtoul(v, NULL, 0);
        break;
      case 'n':
        o->iters = atoi(v);
        break;
      case 'r':
        o->rx_depth = atoi(v);
        break;
      case 'm':
        o->mtu = atoi(v);
        break;
      case 'g':
        o->gid_index = atoi(v);
        break;
      case 't':
        o->tag = v;
        break;
      default:
        fprintf(stderr, "bad option %s\n", a);
        return 1;
    }
  }
  return o->size == 0 || o->iters <= 0 || o->rx_depth <= 0;
}

static int do_not_block(struct pingpong* p, const struct options* o) {
  int flags = fcntl(p->channel->fd, F_GETFL);

  if (flags < 0 || fcntl(p->channel->fd, F_SETFL, flags | O_NONBLOCK)) return fprintf(stderr, "fcntl\n"), 1;
  if (!(fcntl(p->channel->fd, F_GETFL) & O_NONBLOCK)) return fprintf(stderr, "the channel blocks\n"), 1;
  if (!o->use_epoll) return 0;
  struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.ptr = p};

  p->epfd = epoll_create1(EPOLL_CLOEXEC);
  if (p->epfd < 0 || epoll_ctl(p->epfd, EPOLL_CTL_ADD, p->channel->fd, &e)) return fprintf(stderr, "epoll\n"), 1;
  return 0;
}

static int create(struct pingpong* p, const struct options* o) {
  int n = 0;
  struct ibv_device** list = ibv_get_device_list(&n);

  if (!list || n == 0) return fprintf(stderr, "no device\n"), 1;
  p->context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  if (!p->context) return fprintf(stderr, "cannot open the device\n"), 1;
  if (ibv_query_port(p->context, 1, &p->port)) return fprintf(stderr, "cannot query the port\n"), 1;
  if (o->use_event) {
    p->channel = ibv_create_comp_channel(p->context);
    if (!p->channel) return fprintf(stderr, "no completion channel\n"), 1;
    if ((o->use_poll || o->use_epoll) && do_not_block(p, o)) return 1;
  }
  p->pd = ibv_alloc_pd(p->context);
  if (!p->pd) return fprintf(stderr, "no protection domain\n"), 1;
  p->buf = malloc(o->size);
  if (!p->buf) return fprintf(stderr, "no memory\n"), 1;
  memset(p->buf, 0x7b, o->size);
  p->mr = ibv_reg_mr(p->pd, p->buf, o->size, IBV_ACCESS_LOCAL_WRITE);
  if (!p->mr) return fprintf(stderr, "cannot register the buffer\n"), 1;
  p->cq = ibv_create_cq(p->context, o->rx_depth + 1, p, p->channel, 0);
  if (!p->cq) return fprintf(stderr, "cannot create the CQ\n"), 1;
  if (o->use_builders) {
    struct ibv_qp_init_attr_ex a = {
        .send_cq = p->cq,
        .recv_cq = p->cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = (uint32_t)o->rx_depth, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = p->pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };

    p->qp = ibv_create_qp_ex(p->context, &a);
    if (p->qp) p->qpx = ibv_qp_to_qp_ex(p->qp);
  } else {
    struct ibv_qp_init_attr a = {
        .send_cq = p->cq,
        .recv_cq = p->cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = (uint32_t)o->rx_depth, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };

    p->qp = ibv_create_qp(p->pd, &a);
  }
  if (!p->qp) return fprintf(stderr, "cannot create the QP\n"), 1;

  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

  if (ibv_modify_qp(p->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
    return fprintf(stderr, "QP does not reach INIT\n"), 1;
  return 0;
}

static int connect_qp(struct pingpong* p, const struct options* o, const struct address* mine,
                      const struct address* peer) {
  struct ibv_qp_attr a = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = mtu_of(o->mtu),
      .dest_qp_num = peer->qpn,
      .rq_psn = peer->psn,
      .max_dest_rd_atomic = 1,
      .min_rnr_timer = 12,
      .ah_attr = {.is_global = 0, .dlid = (uint16_t)peer->lid, .port_num = 1},
  };

  if (peer->gid.global.interface_id) {
    a.ah_attr.is_global = 1;
    a.ah_attr.grh.hop_limit = 64;
    a.ah_attr.grh.dgid = peer->gid;
    a.ah_attr.grh.sgid_index = (uint8_t)o->gid_index;
  }
  if (ibv_modify_qp(p->qp, &a,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
    return fprintf(stderr, "QP does not reach RTR\n"), 1;
  a.qp_state = IBV_QPS_RTS;
  a.timeout = 14;
  a.retry_cnt = 7;
  a.rnr_retry = 7;
  a.sq_psn = mine->psn;
  a.max_rd_atomic = 1;
  if (ibv_modify_qp(p->qp, &a,
                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                        IBV_QP_MAX_QP_RD_ATOMIC))
    return fprintf(stderr, "QP does not reach RTS\n"), 1;
  return 0;
}

static int post_recv(struct pingpong* p, const struct options* o, int n) {
  struct ibv_sge sge = {.addr = (uintptr_t)p->buf, .length = (uint32_t)o->size, .lkey = p->mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = RECV_WRID, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  int i;

  for (i = 0; i < n; ++i)
    if (ibv_post_recv(p->qp, &wr, &bad)) break;
  return i;
}

static int post_send(struct pingpong* p, const struct options* o) {
  struct ibv_sge sge = {.addr = (uintptr_t)p->buf, .length = (uint32_t)o->size, .lkey = p->mr->lkey};
  struct ibv_send_wr wr = {
      .wr_id = SEND_WRID, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
  struct ibv_send_wr* bad;

  if (!p->qpx) return ibv_post_send(p->qp, &wr, &bad);
  ibv_wr_start(p->qpx);
  p->qpx->wr_id = SEND_WRID;
  p->qpx->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(p->qpx);
  ibv_wr_set_sge(p->qpx, sge.lkey, sge.addr, sge.length);
  return ibv_wr_complete(p->qpx);
}

/* Until the channel may have an event. */
static int wait_readable(struct pingpong* p) {
  struct pollfd fd = {.fd = p->channel->fd, .events = POLLIN};
  struct epoll_event e;

  if (p->epfd > 0) return epoll_wait(p->epfd, &e, 1, -1) != 1 || e.data.ptr != p || !(e.events & EPOLLIN);
  while (poll(&fd, 1, 10) == 0) continue;
  return fd.revents != POLLIN;
}

/* Blocks until the CQ has an event; arms it again before the caller drains it. */
static int wait_event(struct pingpong* p, const struct options* o) {
  struct ibv_cq* cq;
  void* context;

  while (ibv_get_cq_event(p->channel, &cq, &context)) {
    if (errno != EAGAIN || !(o->use_poll || o->use_epoll)) return fprintf(stderr, "no event\n"), 1;
    if (wait_readable(p)) return fprintf(stderr, "the wait went wrong\n"), 1;
  }
  if (cq != p->cq || context != p) return fprintf(stderr, "event of an unknown CQ\n"), 1;
  ++p->unacked;
  if (ibv_req_notify_cq(p->cq, 0)) return fprintf(stderr, "cannot arm the CQ\n"), 1;
  return 0;
}

static int check_payload(struct pingpong* p, const struct options* o, int round) {
  for (size_t i = 0; i < o->size; i += 1024)
    if (p->buf[i] != (char)(round + 1)) return fprintf(stderr, "wrong byte %zu in round %d\n", i, round), 1;
  return 0;
}

static void fill_payload(struct pingpong* p, const struct options* o, int round) {
  for (size_t i = 0; i < o->size; i += 1024) p->buf[i] = (char)(round + 1);
}

static int run(struct pingpong* p, const struct options* o, int sends_first) {
  int sent = 0, received = 0, posted = post_recv(p, o, o->rx_depth);

  if (posted < o->rx_depth) return fprintf(stderr, "only %d receives accepted\n", posted), 1;
  if (p->channel && ibv_req_notify_cq(p->cq, 0)) return fprintf(stderr, "cannot arm the CQ\n"), 1;

  /* Nobody sends before the other side has posted its receives. */
  char here = 0, there = 0;

  if (rdmasim_exchange(o->tag, &here, &there, 1)) return fprintf(stderr, "exchange failed\n"), 1;

  p->pending = RECV_WRID;
  if (sends_first) {
    if (o->validate) fill_payload(p, o, 0);
    if (post_send(p, o)) return fprintf(stderr, "cannot send\n"), 1;
    p->pending |= SEND_WRID;
  }
  while (received < o->iters || sent < o->iters) {
    struct ibv_wc wc[2];
    int n;

    if (p->channel && wait_event(p, o)) return 1;
    do {
      n = ibv_poll_cq(p->cq, 2, wc);
      if (n < 0) return fprintf(stderr, "poll failed: %d\n", n), 1;
      for (int i = 0; i < n; ++i) {
        if (wc[i].status != IBV_WC_SUCCESS)
          return fprintf(stderr, "WR %d failed: %s\n", (int)wc[i].wr_id, ibv_wc_status_str(wc[i].status)), 1;
        if (wc[i].wr_id == SEND_WRID) {
          ++sent;
        } else {
          if (wc[i].byte_len != o->size) return fprintf(stderr, "received %u bytes\n", wc[i].byte_len), 1;
          if (o->validate && check_payload(p, o, received)) return 1;
          if (--posted <= 1) posted += post_recv(p, o, o->rx_depth - posted);
          ++received;
        }
        p->pending &= ~(int)wc[i].wr_id;
        if (sent < o->iters && !p->pending) {
          if (o->validate) fill_payload(p, o, sent);
          if (post_send(p, o)) return fprintf(stderr, "cannot send\n"), 1;
          p->pending = RECV_WRID | SEND_WRID;
        }
      }
    } while (p->channel ? n > 0 : n == 0);
  }
  return 0;
}

static int destroy(struct pingpong* p) {
  if (p->unacked) ibv_ack_cq_events(p->cq, p->unacked);
  if (ibv_destroy_qp(p->qp) || ibv_destroy_cq(p->cq) || ibv_dereg_mr(p->mr) || ibv_dealloc_pd(p->pd))
    return fprintf(stderr, "an object is still in use\n"), 1;
  if (p->epfd > 0 && close(p->epfd)) return fprintf(stderr, "cannot close the epoll instance\n"), 1;
  if (p->channel && ibv_destroy_comp_channel(p->channel)) return fprintf(stderr, "the channel is still in use\n"), 1;
  free(p->buf);
  return ibv_close_device(p->context);
}

int main(int argc, char** argv) {
  struct options o;
  struct pingpong p = {0};
  struct address mine = {0}, peer = {0};

  if (parse(argc, argv, &o) || create(&p, &o)) return 1;
  mine.lid = p.port.lid;
  mine.qpn = p.qp->qp_num;
  mine.psn = (mine.qpn * 2654435761u) & 0xffffff;
  if (p.port.link_layer == IBV_LINK_LAYER_ETHERNET && ibv_query_gid(p.context, 1, o.gid_index, &mine.gid))
    return fprintf(stderr, "no GID %d\n", o.gid_index), 1;
  if (rdmasim_exchange(o.tag, &mine, &peer, sizeof mine)) return fprintf(stderr, "exchange failed\n"), 1;
  if (connect_qp(&p, &o, &mine, &peer)) return 1;
  int order = memcmp(&mine, &peer, sizeof mine);

  if (order == 0) return fprintf(stderr, "both sides have one address\n"), 1;
  if (run(&p, &o, order > 0)) return 1;
  return destroy(&p);
}
