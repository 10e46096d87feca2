// SPDX-License-Identifier: Apache-2.0
// One host of a traffic property test: a verbs program that sends its streams, receives the peer's, and checks every
// completion and every byte.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "sim/rng.h"
#include "system/host.h"
#include "tests/properties/traffic_plan.h"

namespace sys::test {

class TrafficProgram {
 public:
  /// `failure` takes the first thing that went wrong on either host.
  TrafficProgram(Plan& plan, int host, Process& process, std::string& failure)
      : plan_(plan),
        shape_(plan.shape),
        host_(host),
        process_(process),
        failure_(failure),
        rng_(plan.seed, host == 0 ? "traffic host0" : "traffic host1") {}
  /// The whole program, from opening the device to closing it.
  void run();
  bool ended() const { return ended_; }
  /// How far each QP has come.
  std::string progress() const;

 private:
  struct Read {  ///< a READ under way and what it has to return
    std::size_t message;
    std::vector<std::byte> expected;
    bool fenced = false;     ///< a later request has waited for it
    bool overtaken = false;  ///< a later WRITE may have changed what it reads
  };
  struct Queue {
    ibv_qp* qp = nullptr;
    ibv_cq *send_cq = nullptr, *recv_cq = nullptr;
    std::byte *send_slots = nullptr, *recv_slots = nullptr, *window = nullptr;
    std::size_t reclaimed = 0;  ///< messages that a completion has covered
    std::size_t posted_receives = 0, received = 0;
    sim::Picos pause_until{0};
    std::deque<Read> reads;
    std::vector<std::byte> peer_window;  ///< the peer's window as the posted WRITEs leave it
    std::vector<std::byte> mine;         ///< own window as the WRITEs before the last receive leave it
    std::size_t applied = 0;             ///< the peer's messages that `mine` contains
  };
  struct Address {
    std::uint32_t qpn, rkey;
    std::uint64_t window;
    ibv_gid gid;
  };

  void open();
  ibv_qp* create_qp(ibv_cq* send, ibv_cq* recv);
  void connect();
  void modify(Queue& q, const Address& peer);
  bool finished() const;
  bool post_sends(std::size_t i);
  bool post_receives(std::size_t i);
  bool poll();
  void wait();
  void on_send(std::size_t i, const ibv_wc& wc);
  void on_receive(std::size_t i, const ibv_wc& wc);
  void check_pieces(const char* what, std::size_t i, std::size_t message, const std::byte* slot,
                    const std::vector<Piece>& pieces, const std::byte* expected, std::uint32_t n);
  void check_write(std::size_t i, std::size_t last);
  void build(std::size_t i, std::size_t message, ibv_send_wr& wr, std::vector<ibv_sge>& sges);
  void post_by_builders(Queue& q, const std::vector<ibv_send_wr>& chain);
  void note_posted(std::size_t i, std::size_t message);
  void close();

  Stream& out(std::size_t i) { return plan_.streams[host_][i]; }
  const Stream& in(std::size_t i) const { return plan_.streams[1 - host_][i]; }
  std::byte* slot_of(std::byte* slots, std::size_t n, std::uint32_t depth) {
    return slots + n % depth * shape_.slot_bytes;
  }
  std::vector<ibv_sge> list(std::byte* slot, const std::vector<Piece>& pieces) const;
  void fail(const std::string& what);
  bool expect(bool good, const std::string& what) {
    if (!good) fail(what);
    return good;
  }
  static void apply(std::vector<std::byte>& window, const Shape& shape, const Message& m, int host, std::size_t qp,
                    std::size_t message);

  Plan& plan_;
  const Shape& shape_;
  const int host_;
  Process& process_;
  std::string& failure_;
  sim::Rng rng_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr *local_ = nullptr, *remote_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  std::vector<ibv_cq*> cqs_;
  std::vector<unsigned> unacked_;  ///< events read per CQ
  std::vector<Queue> queues_;
  std::vector<Address> peer_;
  std::byte *slots_ = nullptr, *windows_ = nullptr;
  unsigned idle_ = 0;  ///< rounds without anything to do
  bool ended_ = false;
};

}  // namespace sys::test
