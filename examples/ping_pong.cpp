// SPDX-License-Identifier: Apache-2.0
// RC ping-pong between two processes, as a program for real adapters would do it. Only the exchange of addresses is the
// simulator's; a real program has a socket there.
//
//   g++ -O2 examples/ping_pong.cpp -o examples/ping_pong.so $(rdmasim config --plugin-flags)
//   rdmasim run examples/ping_pong.json
#include <infiniband/verbs.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "verbs_frontend/program.h"

namespace {

struct Address {
  std::uint32_t qpn;
  ibv_gid gid;
};

template <class T, auto destroy>
struct Destroy {
  void operator()(T* p) const { destroy(p); }
};
template <class T, auto destroy>
using Owner = std::unique_ptr<T, Destroy<T, destroy>>;

void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

class PingPong {
 public:
  PingPong(std::uint32_t size, int iters) : size_(size), iters_(iters) {
    int n = 0;
    ibv_device** const devices = ibv_get_device_list(&n);
    check(devices != nullptr && n > 0, "there is no device");
    context_.reset(ibv_open_device(devices[0]));
    ibv_free_device_list(devices);
    check(context_ != nullptr, "ibv_open_device");
    pd_.reset(ibv_alloc_pd(context_.get()));
    // Memory that the adapter reaches comes from malloc and its like.
    buffer_.reset(static_cast<char*>(std::aligned_alloc(4096, (std::size_t{size} + 4095) / 4096 * 4096)));
    check(pd_ && buffer_, "out of memory");
    mr_.reset(ibv_reg_mr(pd_.get(), buffer_.get(), size, IBV_ACCESS_LOCAL_WRITE));
    cq_.reset(ibv_create_cq(context_.get(), 16, nullptr, nullptr, 0));
    check(mr_ && cq_, "ibv_reg_mr, ibv_create_cq");
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_.get();
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    qp_.reset(ibv_create_qp(pd_.get(), &init));
    check(qp_ != nullptr, "ibv_create_qp");
  }

  void connect() {
    Address mine{qp_->qp_num, {}}, theirs{};
    check(ibv_query_gid(context_.get(), 1, 3, &mine.gid) == 0, "ibv_query_gid");
    check(rdmasim_exchange("address", &mine, &theirs, sizeof mine) == 0, "exchange");
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    modify(a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    post_recv();
    a = {};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = theirs.qpn;
    a.min_rnr_timer = 12;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    a.ah_attr.grh.dgid = theirs.gid;
    a.ah_attr.grh.sgid_index = 3;
    a.ah_attr.grh.hop_limit = 64;
    modify(a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                  IBV_QP_MIN_RNR_TIMER);
    a = {};
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = 7;
    a.rnr_retry = 7;
    modify(a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                  IBV_QP_MAX_QP_RD_ATOMIC);
    char here = 1, there = 0;  // nobody sends before the other can receive
    check(rdmasim_exchange("ready", &here, &there, sizeof here) == 0, "exchange");
  }

  /// Nanoseconds per round trip.
  double run(bool first) {
    timespec begin{}, end{};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < iters_; ++i) {
      if (first) post_send();
      wait(first ? 2 : 1);  // my send and the answer, or the question
      if (i + 1 < iters_) post_recv();
      if (!first) post_send();
      if (!first) wait(1);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (static_cast<double>(end.tv_sec - begin.tv_sec) * 1e9 + static_cast<double>(end.tv_nsec - begin.tv_nsec)) /
           iters_;
  }

 private:
  void modify(ibv_qp_attr& a, int mask) { check(ibv_modify_qp(qp_.get(), &a, mask) == 0, "ibv_modify_qp"); }
  ibv_sge sge() const { return {reinterpret_cast<std::uintptr_t>(buffer_.get()), size_, mr_->lkey}; }
  void post_recv() {
    ibv_sge s = sge();
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.sg_list = &s;
    wr.num_sge = 1;
    check(ibv_post_recv(qp_.get(), &wr, &bad) == 0, "ibv_post_recv");
  }
  void post_send() {
    ibv_sge s = sge();
    ibv_send_wr wr{}, *bad = nullptr;
    wr.sg_list = &s;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    check(ibv_post_send(qp_.get(), &wr, &bad) == 0, "ibv_post_send");
  }
  void wait(int completions) {
    while (completions > 0) {
      ibv_wc wc{};
      const int n = ibv_poll_cq(cq_.get(), 1, &wc);
      check(n >= 0, "ibv_poll_cq");
      if (n > 0) check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
      completions -= n;
    }
  }

  const std::uint32_t size_;
  const int iters_;
  Owner<ibv_context, ibv_close_device> context_;
  Owner<ibv_pd, ibv_dealloc_pd> pd_;
  Owner<char, std::free> buffer_;
  Owner<ibv_mr, ibv_dereg_mr> mr_;
  Owner<ibv_cq, ibv_destroy_cq> cq_;
  Owner<ibv_qp, ibv_destroy_qp> qp_;
};

}  // namespace

int main(int argc, char** argv) {
  std::uint32_t size = 64;
  int iters = 1000;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--size") size = static_cast<std::uint32_t>(std::stoul(argv[i + 1]));
    else if (option == "--iters") iters = std::stoi(argv[i + 1]);
    else return std::fprintf(stderr, "unknown option %s\n", argv[i]), 2;
  }
  try {
    PingPong p(size, iters);
    p.connect();
    const bool first = std::strcmp(argv[0], "client") == 0;
    const double ns = p.run(first);
    if (first) std::printf("%u bytes: %.0f ns per round trip\n", size, ns);
  } catch (const std::exception& e) {
    return std::fprintf(stderr, "%s: %s\n", argv[0], e.what()), 1;
  }
  return 0;
}
