// SPDX-License-Identifier: Apache-2.0
// Work completions in error. The first one of a queue pair that is no flush is the fault; the flushes behind it are its
// consequence (S-ERR-30, S-QP-43). Where a step program wrote the WR, it is looked up, and what is wrong in it, or at the
// object it asks for, becomes the advice.
#include <algorithm>
#include <cmath>

#include "experiment/explain_parts.h"
#include "sim/units.h"

namespace experiment {
namespace {

using sim::Json;

/// Of a member that check_result has seen.
std::string text_of(const Json& j, const char* key) { return j.find(key)->string(); }

struct Status {
  const char *name, *id, *what;
  std::vector<std::string> rules;
};

const std::vector<Status>& statuses() {
  static const std::vector<Status> all{
      {"REM_ACCESS_ERR",
       "rem_access_err",
       "the peer's device refused the remote key: it is unknown, of another domain, too short, or lacks the right",
       {"S-ERR-1", "S-ERR-2", "S-ERR-3", "A-52"}},
      {"REM_INV_REQ_ERR",
       "rem_inv_req_err",
       "the peer's device refused the request itself: the QP does not allow it, or it does not fit what waits for it",
       {"S-ERR-4", "S-ERR-9", "A-53", "A-54"}},
      {"REM_OP_ERR",
       "rem_op_err",
       "the peer's device could not carry the request out in its own memory",
       {"S-ERR-10", "S-ERR-11"}},
      {"RNR_RETRY_EXC_ERR",
       "rnr_retry_exc_err",
       "the peer had no receive posted, and the RNR retries are used up",
       {"S-ERR-12", "S-RC-51", "S-RC-14"}},
      {"RETRY_EXC_ERR",
       "retry_exc_err",
       "no answer has come, and the retries are used up",
       {"S-ERR-13", "S-RC-44", "A-50"}},
      {"LOC_LEN_ERR",
       "loc_len_err",
       "the message is longer than the receive, the datagram or the device allows",
       {"S-ERR-9", "S-ERR-17", "A-54"}},
      {"LOC_PROT_ERR",
       "loc_prot_err",
       "a segment of the WR cannot be read or written with its local key",
       {"S-ERR-14", "S-ERR-10", "A-56"}},
      {"LOC_QP_OP_ERR", "loc_qp_op_err", "the device must not execute this WQE on this queue pair", {"S-ERR-16"}},
      {"LOC_ACCESS_ERR", "loc_access_err", "a result could not be placed", {"S-ERR-15"}},
      {"BAD_RESP_ERR", "bad_resp_err", "the answer does not fit the request", {"S-ERR-18", "S-RC-36"}},
      {"MW_BIND_ERR",
       "mw_bind_err",
       "a bind or an invalidate of a memory window was refused",
       {"S-ERR-19", "S-ERR-20"}},
      {"WR_FLUSH_ERR",
       "flushed",
       "work was outstanding when the queue pair went to ERR without a fault of its own",
       {"S-ERR-23", "S-QP-43"}}};
  return all;
}

/// The first failure of one queue pair.
struct Failed {
  ObjectName qp;             ///< of a step program
  std::size_t workload = 0;  ///< otherwise
  std::string side, host, status, pointer;
  Json wr_id;
  double time_ns = 0;
};

double total_length(const Facts& f, const std::string& program, const PostedWr& wr) {
  const Json* sges = wr.wr != nullptr ? wr.wr->find("sge") : nullptr;
  if (sges == nullptr || !sges->is_array()) return 0;
  double sum = 0;
  for (const Json& s : sges->items()) {
    const Json* length = s.find("length");
    if (length != nullptr && length->is_number()) {
      sum += length->number();
      continue;
    }
    const Json* mr = s.find("mr");
    std::string name = mr != nullptr && mr->is_string() ? mr->string() : "";
    const Json* all = f.config("programs." + program + ".mr");
    if (name.empty() && all != nullptr && all->is_object() && all->members().size() == 1) name = all->members()[0].key;
    const auto size = sim::parse_bytes(f.config_text("programs." + program + ".mr." + name + ".size"));
    const Json* offset = s.find("offset");
    if (size)
      sum += static_cast<double>(size.value.n) - (offset != nullptr && offset->is_number() ? offset->number() : 0);
  }
  return sum;
}

/// The access right that an opcode needs at the peer, empty if none.
std::string needed_right(const std::string& opcode) {
  if (opcode.starts_with("RDMA_WRITE")) return "REMOTE_WRITE";
  if (opcode == "RDMA_READ") return "REMOTE_READ";
  if (opcode.starts_with("ATOMIC")) return "REMOTE_ATOMIC";
  return "";
}

bool has(const Json* list, const std::string& word) {
  return list != nullptr && list->is_array() &&
         std::ranges::any_of(list->items(), [&](const Json& j) { return j.is_string() && j.string() == word; });
}
Json with(const Json* list, const std::string& word) {
  Json out = list != nullptr && list->is_array() ? *list : Json::array();
  out.push_back(word);
  return out;
}

std::string size_text(double bytes) { return number_text(bytes, 20) + " B"; }

/// What is wrong between this WR and the memory that it names.
void advise_remote_key(const Facts& f, const Failed& e, const PostedWr& wr, Diagnosis& d) {
  const std::string remote = wr.path + ".remote";
  if (f.config_number(remote + ".rkey_plus") != 0) {
    d.rules = {"S-ERR-1", "S-MR-7", "A-52"};
    d.evidence.push_back(f.configured(remote + ".rkey_plus", "added to the key of the region: no such key"));
    return d.advice.push_back(f.turn(remote + ".rkey_plus", 0, "the WR then carries the key of the region"));
  }
  const ObjectName mr = Facts::object_name(f.config_text(remote + ".mr"));
  const std::string path = "programs." + mr.program + ".mr." + mr.name;
  if (f.config(path) == nullptr) return;
  const std::string right = needed_right(f.config_text(wr.path + ".opcode"));
  if (!right.empty() && !has(f.config(path + ".access"), right)) {
    d.rules = {"S-ERR-3", "S-RC-17", "A-52"};
    d.evidence.push_back(f.configured(path + ".access", "rights of the region, without " + right));
    d.advice.push_back(f.turn(path + ".access", with(f.config(path + ".access"), right), "the region then grants it"));
  }
  const auto size = sim::parse_bytes(f.config_text(path + ".size"));
  const double end = f.config_number(remote + ".offset") + total_length(f, e.qp.program, wr);
  if (size && end > static_cast<double>(size.value.n)) {
    d.rules = {"S-ERR-2", "S-RC-17", "A-52"};
    d.evidence.push_back(Facts::derived(end, "bytes from the start of the region that the request reaches to"));
    d.evidence.push_back(f.configured(path + ".size", "length of the region"));
    d.advice.push_back(f.turn(path + ".size", size_text(end), "the region then covers the whole range"));
  }
}

/// Pointer to the status of the first completion of a queue pair with this status, empty if there is none.
std::string completion_at(const Facts& f, const ObjectName& qp, const char* status) {
  for (const auto& p : f.programs()) {
    const auto& all = p.value.find("completions")->items();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (f.owner(p.key) == qp.program && text_of(all[i], "qp") == qp.name && text_of(all[i], "status") == status)
        return "/programs/" + p.key + "/completions/" + std::to_string(i) + "/status";
  }
  return "";
}

/// What the peer's queue pair, or the receive that waits there, does not take.
void advise_request(const Facts& f, const Failed& e, const PostedWr& wr, Diagnosis& d) {
  const ObjectName peer = f.peer_of(e.qp);
  if (peer.empty()) return;
  if (const std::string short_receive = completion_at(f, peer, "LOC_LEN_ERR"); !short_receive.empty()) {
    d.what = "the message is longer than the receive that it met";
    d.rules = {"S-ERR-9", "A-54"};
    return d.evidence.push_back(f.found(short_receive, "status of the receive at " + peer.program + "." + peer.name));
  }
  const std::string path = Facts::qp_path(peer), right = needed_right(f.config_text(wr.path + ".opcode"));
  const Json* flags = f.config(path + ".attr.qp_access_flags");
  // The default lets READs and WRITEs in, and no atomics.
  const bool allowed = flags != nullptr ? has(flags, right) : right != "REMOTE_ATOMIC";
  if (!right.empty() && !allowed) {
    d.rules = {"S-ERR-4", "S-RC-13", "A-53"};
    if (flags != nullptr)
      d.evidence.push_back(f.configured(path + ".attr.qp_access_flags", "what the peer's QP allows"));
    Json wanted = flags != nullptr ? with(flags, right) : Json::array();
    if (flags == nullptr)
      for (const char* r : {"REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC"}) wanted.push_back(r);
    return d.advice.push_back(f.turn(path + ".attr.qp_access_flags", wanted, "the QP then allows the request"));
  }
  const double offset = f.config_number(wr.path + ".remote.offset");
  if (right == "REMOTE_ATOMIC" && std::fmod(offset, 8) != 0) {
    d.rules = {"S-ERR-7", "A-61"};
    d.evidence.push_back(f.configured(wr.path + ".remote.offset", "an atomic needs a multiple of 8"));
    return d.advice.push_back(
        f.turn(wr.path + ".remote.offset", whole(offset - std::fmod(offset, 8)), "an aligned address"));
  }
}

/// The receive was too short: how long it has to be.
void advise_receive(const Facts& f, const Failed& e, Diagnosis& d) {
  const PostedWr receive = f.find_wr(e.qp, "post_recv", e.wr_id.number());
  if (receive.wr == nullptr) return;
  double longest = 0, header = 0;
  const ObjectName peer = f.peer_of(e.qp);
  const bool datagrams = f.config_text(Facts::qp_path(e.qp) + ".type") == "UD";
  for (const auto& p : f.programs())
    f.for_each_step(p.key, [&](const std::string& at, const Json&, double) {
      const Json* chain = f.config(at + ".post_send.wr");
      if (chain == nullptr || !chain->is_array()) return;
      const bool by_peer = !peer.empty() && f.owner(p.key) == peer.program;
      for (std::size_t i = 0; i < chain->items().size(); ++i) {
        const std::string wr = at + ".post_send.wr." + std::to_string(i);
        if (datagrams ? f.config_text(wr + ".ud.qp") == e.qp.program + "." + e.qp.name
                      : by_peer && f.config_text(wr + ".opcode").starts_with("SEND"))
          longest = std::max(longest, total_length(f, f.owner(p.key), {wr, &chain->items()[i]}));
      }
    });
  if (datagrams) header = 40;
  const double granted = total_length(f, e.qp.program, receive);
  if (longest + header <= granted) return;
  d.rules = datagrams ? std::vector<std::string>{"S-PR-8", "S-UD-5"} : std::vector<std::string>{"S-ERR-9", "A-54"};
  d.evidence.push_back(Facts::derived(granted, "bytes that the receive holds (" + receive.path + ")"));
  d.evidence.push_back(Facts::derived(longest + header, datagrams
                                                            ? "bytes of the datagram with the 40 of the GRH in front"
                                                            : "bytes of the longest SEND of the peer"));
  const Json* sges = receive.wr->find("sge");
  if (sges != nullptr && sges->is_array() && sges->items().size() == 1)
    d.advice.push_back(f.turn(receive.path + ".sge.0.length", whole(longest + header), "the message then fits"));
}

void advise_local_key(const Facts& f, const PostedWr& wr, Diagnosis& d) {
  const Json* sges = wr.wr->find("sge");
  for (std::size_t i = 0; sges != nullptr && sges->is_array() && i < sges->items().size(); ++i)
    for (const char* made_up : {"lkey", "addr"})
      if (sges->items()[i].find(made_up) != nullptr)
        d.evidence.push_back(f.configured(wr.path + ".sge." + std::to_string(i) + "." + made_up,
                                          "not that of a region, but written in the scenario"));
}

void advise_rnr(const Facts& f, const Failed& e, Diagnosis& d) {
  const std::string host = std::to_string(f.host_number(e.host));
  d.evidence.push_back(
      f.counted("host" + host + ".hca.requester.rnr_naks_received", "RNR NAKs that the device has got"));
  const std::string path = e.qp.empty() ? "workloads." + std::to_string(e.workload) + ".rnr_retry"
                                        : Facts::qp_path(e.qp) + ".attr.rnr_retry";
  const double retries = f.config_number(path, 7);
  if (f.config(path) != nullptr) d.evidence.push_back(f.configured(path, "attempts after the first one"));
  if (!e.qp.empty()) compare_receives(f, e.qp, d);
  if (retries < 6)
    d.advice.push_back(
        f.turn(path, 6, "asks six times more, one RNR timer apart; the cure is to post receives in time"));
}

void advise_retry(const Facts& f, const Failed& e, Diagnosis& d) {
  const std::size_t me = f.host_number(e.host);
  d.evidence.push_back(
      f.counted("host" + std::to_string(me) + ".hca.requester.timeouts", "times that an ACK timer ran out"));
  bool lost = false, deaf = false;
  for (const auto& m : f.result().find("counters")->members()) {
    if (m.value.number() == 0) continue;
    const bool link =
        m.key.starts_with("fabric.") && (m.key.ends_with(".dropped") || m.key.ends_with(".lost_while_down"));
    const bool drop = m.key.find(".hca.rx.dropped.") != std::string::npos || m.key.ends_with(".hca.rx.lost");
    if (link || drop)
      d.evidence.push_back(f.counted(m.key, link ? "packets that the link lost"
                                                 : "packets that a device threw away: nobody there answers for them"));
    lost |= link;
    deaf |= drop;
  }
  if (deaf && !lost) d.what += "; the packets arrived, but the queue pair at the other end is gone or not ready";
  const std::string base =
      e.qp.empty() ? "workloads." + std::to_string(e.workload) + "." : Facts::qp_path(e.qp) + ".attr.";
  if (lost && f.config_number(base + "retry_cnt", 7) < 7)
    d.advice.push_back(f.turn(base + "retry_cnt", 7, "sends again seven times"));
  if (lost)
    d.advice.push_back(
        f.turn(base + (e.qp.empty() ? "qp_timeout" : "timeout"),
               whole(std::min(31.0, f.config_number(base + (e.qp.empty() ? "qp_timeout" : "timeout"), 14) + 3)),
               "waits eight times as long before each retry, and so outlasts the outage"));
}

void advise(const Facts& f, const Failed& e, Diagnosis& d) {
  if (e.status == "RNR_RETRY_EXC_ERR") return advise_rnr(f, e, d);
  if (e.status == "RETRY_EXC_ERR") return advise_retry(f, e, d);
  if (e.qp.empty()) return;
  if (e.status == "LOC_LEN_ERR") return advise_receive(f, e, d);
  const PostedWr wr = f.find_wr(e.qp, "post_send", e.wr_id.number());
  if (wr.wr == nullptr) return;
  d.who += " (" + wr.path + ")";
  if (e.status == "REM_ACCESS_ERR") advise_remote_key(f, e, wr, d);
  if (e.status == "REM_INV_REQ_ERR") advise_request(f, e, wr, d);
  if (e.status == "LOC_PROT_ERR") advise_local_key(f, wr, d);
}

std::string name_of(const Failed& e) {
  return (e.qp.empty() ? e.side : e.qp.program + "." + e.qp.name) + " on " + e.host + ", WR " + e.wr_id.compact();
}

Diagnosis diagnose(const Facts& f, const Failed& e, double flushed) {
  Diagnosis d;
  const auto s = std::ranges::find(statuses(), e.status, &Status::name);
  d.severity = Severity::error;
  d.id = s != statuses().end() ? s->id : "wc_error";
  d.what = s != statuses().end() ? s->what : "a work completion reports " + e.status;
  if (s != statuses().end()) d.rules = s->rules;
  d.who = name_of(e);
  d.when_ns = e.time_ns;
  d.evidence.push_back(f.found(e.pointer, "status of the work completion"));
  if (flushed > 0)
    d.evidence.push_back(
        Facts::derived(flushed, "further work completions of the queue pair, flushed because it is in ERR (S-QP-43)"));
  const ObjectName peer = e.qp.empty() ? ObjectName{} : f.peer_of(e.qp);
  const auto& events = f.result().find("async_events")->items();
  for (std::size_t i = 0; i < events.size(); ++i)
    if (const std::string type = text_of(events[i], "type");
        !peer.empty() && text_of(events[i], "object") == peer.program + "." + peer.name && type.starts_with("QP_"))
      d.evidence.push_back(f.found("/async_events/" + std::to_string(i) + "/type", "what the peer's program is told"));
  advise(f, e, d);
  return d;
}

/// The failures of one list of completions, by queue pair in the order of time.
struct Book {
  std::vector<Failed> first;
  std::vector<double> flushed;
  void add(Failed e) {
    const auto same = [&](const Failed& o) {
      return o.qp.program == e.qp.program && o.qp.name == e.qp.name && o.side == e.side && o.workload == e.workload;
    };
    const auto at = std::ranges::find_if(first, same);
    const bool flush = e.status == "WR_FLUSH_ERR";
    if (at == first.end()) {
      first.push_back(std::move(e));
      flushed.push_back(0);
      return;
    }
    double& count = flushed[static_cast<std::size_t>(at - first.begin())];
    if (flush) ++count;
    else if (at->status == "WR_FLUSH_ERR") *at = std::move(e), ++count;
  }
};

}  // namespace

void find_errors(const Facts& f, Diagnoses& out) {
  Book book;
  for (const auto& p : f.programs()) {
    const auto& all = p.value.find("completions")->items();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (text_of(all[i], "status") == "SUCCESS") continue;
      book.add({{f.owner(p.key), text_of(all[i], "qp")},
                0,
                "",
                text_of(p.value, "host"),
                text_of(all[i], "status"),
                "/programs/" + p.key + "/completions/" + std::to_string(i) + "/status",
                *all[i].find("wr_id"),
                all[i].find("time_ns")->number()});
    }
  }
  for (std::size_t w = 0; w < f.workloads().size(); ++w) {
    const auto& all = f.workloads()[w].find("errors")->items();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string side = text_of(all[i], "side");
      book.add({{},
                w,
                text_of(f.workloads()[w], "name") + "." + side,
                f.host_name(side == "client" ? f.client_host(w) : f.server_host(w)),
                text_of(all[i], "status"),
                "/workloads/" + std::to_string(w) + "/errors/" + std::to_string(i) + "/status",
                *all[i].find("wr_id"),
                all[i].find("time_ns")->number()});
    }
  }
  for (std::size_t i = 0; i < book.first.size(); ++i) out.push_back(diagnose(f, book.first[i], book.flushed[i]));
}

}  // namespace experiment
