// SPDX-License-Identifier: Apache-2.0
// Steps of the data path: posting, polling, completion and asynchronous events.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "system/steps_program.h"

namespace sys {

using sim::Picos;

namespace {

/// WRs of a chain that a call took; one that is not built for the object refuses without naming any.
template <class Wr>
std::size_t accepted_of(int error, const std::vector<Wr>& chain, const Wr* bad) {
  if (error == 0) return chain.size();
  return bad != nullptr ? static_cast<std::size_t>(bad - chain.data()) : 0;
}

}  // namespace

ibv_sge StepsProgram::sge(const SgeConfig& c) {
  ibv_sge out{};
  if (c.addr && c.lkey) return {*c.addr, c.length.value_or(0), *c.lkey};
  const ibv_mr* mr = objects_.mr(c.mr);
  out.addr = c.addr.value_or(objects_.base(mr) + c.offset);
  out.length =
      c.length.value_or(static_cast<std::uint32_t>(mr->length - std::min<std::uint64_t>(c.offset, mr->length)));
  out.lkey = c.lkey.value_or(mr->lkey);
  return out;
}

void StepsProgram::fill(ibv_send_wr& wr, const SendWrConfig& c) {
  wr.opcode = c.opcode;
  wr.send_flags = mask_of(c.send_flags);
  if (c.opcode == IBV_WR_SEND_WITH_IMM || c.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) wr.imm_data = htonl(c.imm_data);
  const auto key_of = [](StepObjects& owner, const std::string& name) {
    const StepObjects::Object* o = owner.find_any(name);
    if (o == nullptr) throw StepFailed{"\"" + name + "\" does not exist at this point"};
    return o->kind == ObjectKind::mw ? static_cast<ibv_mw*>(o->handle)->rkey : static_cast<ibv_mr*>(o->handle)->rkey;
  };
  std::uint64_t remote = 0;
  std::uint32_t rkey = 0;
  if (c.remote) {
    const RemoteConfig& r = *c.remote;
    if (!r.mr.empty()) {
      const auto [owner, name] = objects_.foreign(r.mr);
      rkey = key_of(*owner, name);
      const StepObjects::Object* o = owner->find_any(name);
      const auto* mr = o->kind == ObjectKind::mr ? static_cast<const ibv_mr*>(o->handle) : owner->window_mr(name);
      remote = mr == nullptr ? r.offset : owner->base(mr) + r.offset;
    }
    remote = r.addr.value_or(remote);
    rkey = r.rkey.value_or(rkey) + static_cast<std::uint32_t>(r.rkey_plus);
  }
  if (c.atomic) {
    wr.wr.atomic.remote_addr = remote;
    wr.wr.atomic.rkey = rkey;
    wr.wr.atomic.compare_add = c.atomic->compare_add;
    wr.wr.atomic.swap = c.atomic->swap;
  } else if (c.remote) {
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = rkey;
  }
  if (c.ud) {
    const UdConfig& u = *c.ud;
    wr.wr.ud.ah = objects_.ah(u.ah);
    wr.wr.ud.remote_qkey = u.remote_qkey.value_or(kDefaultQkey);
    wr.wr.ud.remote_qpn = u.remote_qpn.value_or(0);
    if (!u.qp.empty()) {
      const auto [owner, name] = objects_.foreign(u.qp);
      if (!u.remote_qkey) wr.wr.ud.remote_qkey = owner->qp_config(name).attr.qkey.value_or(kDefaultQkey);
      if (!u.remote_qpn) wr.wr.ud.remote_qpn = owner->qp({name})->qp_num;
    }
  }
  if (c.invalidate_rkey) {
    wr.invalidate_rkey = *c.invalidate_rkey;
  } else if (!c.invalidate.empty()) {
    const bool foreign = c.invalidate.text.find('.') != std::string::npos;
    const auto [owner, name] = foreign ? objects_.foreign(c.invalidate) : std::pair{&objects_, c.invalidate.text};
    wr.invalidate_rkey = key_of(*owner, name);
  }
  if (c.bind_mw) {
    wr.bind_mw.mw = objects_.mw(c.bind_mw->mw);
    wr.bind_mw.rkey = ibv_inc_rkey(wr.bind_mw.mw->rkey);
    wr.bind_mw.bind_info = bind_info(*c.bind_mw);
  }
}

int StepsProgram::post_send(const PostSendStep& s) {
  if (s.until == PostUntil::once) return post_chain(s);
  for (;;)
    if (const int error = post_chain(s); error != 0) return error == ENOMEM ? 0 : error;
}

int StepsProgram::post_chain(const PostSendStep& s) {
  StepObjects::Object& q = objects_.find(s.qp, ObjectKind::qp);
  std::vector<ibv_send_wr> wrs(s.wr.size());
  std::vector<std::vector<ibv_sge>> lists(s.wr.size());
  for (std::size_t i = 0; i < wrs.size(); ++i) {
    const SendWrConfig& c = s.wr[i];
    for (const SgeConfig& e : c.sge) lists[i].push_back(sge(e));
    wrs[i].wr_id = c.wr_id.value_or(q.sends + i);
    wrs[i].next = i + 1 < wrs.size() ? &wrs[i + 1] : nullptr;
    wrs[i].sg_list = lists[i].data();
    wrs[i].num_sge = static_cast<int>(lists[i].size());
    fill(wrs[i], c);
    if (s.cq_mod && (q.sends + i + 1) % *s.cq_mod == 0) wrs[i].send_flags |= IBV_SEND_SIGNALED;
  }
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(static_cast<ibv_qp*>(q.handle), wrs.data(), &bad);
  const std::size_t accepted = accepted_of(error, wrs, bad);
  for (std::size_t i = 0; i < accepted; ++i)
    if (s.wr[i].bind_mw) objects_.note_bound(*s.wr[i].bind_mw, wrs[i].bind_mw.rkey);
  q.sends += accepted;
  if (s.bad_wr && error != 0 && accepted != *s.bad_wr)
    throw StepFailed{"bad_wr names WR " + std::to_string(accepted) + " of the chain, expected " +
                     std::to_string(*s.bad_wr)};
  return error;
}

int StepsProgram::post_recv(const PostRecvStep& s) {
  StepObjects::Object& q = s.srq.empty() ? objects_.find(s.qp, ObjectKind::qp) : objects_.find(s.srq, ObjectKind::srq);
  std::vector<ibv_recv_wr> wrs(s.wr.size());
  std::vector<std::vector<ibv_sge>> lists(s.wr.size());
  for (std::size_t i = 0; i < wrs.size(); ++i) {
    for (const SgeConfig& e : s.wr[i].sge) lists[i].push_back(sge(e));
    wrs[i].wr_id = s.wr[i].wr_id.value_or(q.receives + i);
    wrs[i].next = i + 1 < wrs.size() ? &wrs[i + 1] : nullptr;
    wrs[i].sg_list = lists[i].data();
    wrs[i].num_sge = static_cast<int>(lists[i].size());
  }
  ibv_recv_wr* bad = nullptr;
  const int error = q.kind == ObjectKind::srq ? ibv_post_srq_recv(static_cast<ibv_srq*>(q.handle), wrs.data(), &bad)
                                              : ibv_post_recv(static_cast<ibv_qp*>(q.handle), wrs.data(), &bad);
  const std::size_t accepted = accepted_of(error, wrs, bad);
  q.receives += accepted;
  if (s.bad_wr && error != 0 && accepted != *s.bad_wr)
    throw StepFailed{"bad_wr names WR " + std::to_string(accepted) + " of the chain, expected " +
                     std::to_string(*s.bad_wr)};
  return error;
}

void StepsProgram::note(const ibv_wc& wc, const std::string& cq) {
  ++record_.polled;
  ++record_.wc_status[std::string(sim::enum_name(wc.status))];
  if (record_.completions.size() == ProgramRecord::kMostListed) return;
  PolledWc& w = record_.completions.emplace_back();
  w.time = cpu::current().now();
  w.cq = cq;
  w.qp = objects_.name_of_qp(wc.qp_num);
  w.wr_id = wc.wr_id;
  w.status = wc.status;
  w.vendor_err = wc.vendor_err;
  if (wc.status != IBV_WC_SUCCESS) return;
  w.opcode = wc.opcode;
  w.byte_len = wc.byte_len;
  w.wc_flags = wc.wc_flags;
  w.src_qp = wc.src_qp;
  if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) w.imm_data = ntohl(wc.imm_data);
}

void StepsProgram::compare(const ibv_wc& wc, const WcConfig& e, std::size_t i) {
  const auto differs = [&](const char* field, const std::string& expected, const std::string& got) {
    throw StepFailed{"completion " + std::to_string(i) + " (" + e.origin.text() + "): expected " + field + " " +
                     expected + ", got " + got};
  };
  const auto number = [&](const char* field, const auto& expected, std::uint64_t got) {
    if (expected && *expected != got) differs(field, std::to_string(*expected), std::to_string(got));
  };
  if (wc.status != e.status)
    differs("status", std::string(sim::enum_name(e.status)), std::string(sim::enum_name(wc.status)));
  number("wr_id", e.wr_id, wc.wr_id);
  number("vendor_err", e.vendor_err, wc.vendor_err);
  if (const std::string qp = objects_.name_of_qp(wc.qp_num); !e.qp.empty() && e.qp.text != qp)
    differs("qp", e.qp.text, qp);
  if (e.opcode && wc.opcode != *e.opcode)
    differs("opcode", std::string(sim::enum_name(*e.opcode)), std::string(sim::enum_name(wc.opcode)));
  number("byte_len", e.byte_len, wc.byte_len);
  if (e.imm_data) number("imm_data", e.imm_data, ntohl(wc.imm_data));
  if (e.wc_flags) number("wc_flags", std::optional(std::uint64_t{mask_of(*e.wc_flags)}), wc.wc_flags);
}

// Between polls that find nothing, a program with a time limit sleeps, so that the limit is noticed; one without spins.
int StepsProgram::poll(const PollStep& s) {
  cpu::Thread& thread = cpu::current();
  const StepObjects::Object& object = objects_.find(s.cq, ObjectKind::cq);
  const std::string cq_name = object.name;
  auto* const cq = static_cast<ibv_cq*>(object.handle);
  const std::size_t wanted = s.wc.empty() ? s.count : s.wc.size();
  const Picos deadline = s.timeout.n == 0 ? sim::kNever : thread.now() + s.timeout;
  const Picos between =
      sim::max(s.pause, s.timeout.n == 0 ? Picos{0} : sim::max(Picos{200'000}, Picos{s.timeout.n / 10'000}));
  std::vector<ibv_wc> wcs(s.batch);
  std::size_t got = 0;
  for (;;) {
    const std::size_t room = s.until == PollUntil::count ? std::min<std::size_t>(s.batch, wanted - got) : s.batch;
    std::memset(wcs.data(), 0xA5, wcs.size() * sizeof(ibv_wc));
    const int n = ibv_poll_cq(cq, static_cast<int>(room), wcs.data());
    if (n < 0) return EIO;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i, ++got) {
      note(wcs[i], cq_name);
      if (s.any_status) continue;
      if (!s.wc.empty() && got >= s.wc.size()) throw StepFailed{"more completions came than `wc` lists"};
      if (!s.wc.empty()) compare(wcs[i], s.wc[got], got);
      else if (const ibv_wc_status want = s.status.value_or(IBV_WC_SUCCESS); wcs[i].status != want)
        throw StepFailed{"completion " + std::to_string(got) + " (wr_id " + std::to_string(wcs[i].wr_id) +
                         "): expected status " + std::string(sim::enum_name(want)) + ", got " +
                         std::string(sim::enum_name(wcs[i].status))};
    }
    if (s.until == PollUntil::once || (s.until == PollUntil::empty && n == 0)) break;
    if (s.until == PollUntil::count && got >= wanted) break;
    if (thread.now() >= deadline) return ETIMEDOUT;
    if (between.n > 0 && (n == 0 || s.pause.n > 0)) thread.sleep(between);
  }
  if (s.until != PollUntil::count && got < s.wc.size())
    throw StepFailed{"expected " + std::to_string(s.wc.size()) + " completions, got " + std::to_string(got)};
  return 0;
}

int StepsProgram::arm(const ArmStep& s) { return ibv_req_notify_cq(objects_.cq(s.cq), s.solicited_only); }

namespace {

/// Waits until the file has something to read.
bool readable(Process& process, int fd, Picos timeout) {
  if (timeout.n == 0) return true;  // the read itself waits
  kernel::PollFd p{fd, POLLIN, 0};
  return process.os.poll({&p, 1}, timeout) == 1;
}

}  // namespace

int StepsProgram::get_event(const GetEventStep& s) {
  ibv_comp_channel* channel = objects_.channel(s.channel);
  if (!readable(objects_.process(), channel->fd, s.timeout)) return ETIMEDOUT;
  ibv_cq* cq = nullptr;
  void* cookie = nullptr;
  if (ibv_get_cq_event(channel, &cq, &cookie) != 0) return errno;
  const std::string name = objects_.name_at(cq);
  record_.events.push_back({cpu::current().now(), name});
  if (!s.cq.empty() && s.cq.text != name)
    throw StepFailed{"expected an event of CQ \"" + s.cq.text + "\", got one of \"" + name + "\""};
  return 0;
}

// The epoll instance of the program holds the files of the last such step, and what it knows of their edges.
int StepsProgram::wait_events(const WaitEventsStep& s) {
  kernel::Process& os = objects_.process().os;
  std::vector<int> fds;
  for (const WaitFile& f : s.files)
    fds.push_back(f.channel ? objects_.channel(*f.channel)->fd : objects_.context()->async_fd);
  const Picos timeout = s.timeout.n == 0 ? Picos{-1} : s.timeout;
  std::set<int> ready;
  if (s.by == WaitBy::poll) {
    std::vector<kernel::PollFd> polled;
    for (const int fd : fds) polled.push_back({fd, POLLIN, 0});
    if (os.poll(polled, timeout) == 0) return ETIMEDOUT;
    for (const kernel::PollFd& p : polled)
      if (p.revents != 0) ready.insert(p.fd);
  } else {
    watch(fds, s.by == WaitBy::epoll_edge ? EPOLLIN | EPOLLET : EPOLLIN);
    std::vector<kernel::EpollEvent> events(fds.size());
    const int n = os.epoll_wait(epoll_, events, timeout);
    if (n == 0) return ETIMEDOUT;
    if (n < 0) return -n;
    for (int i = 0; i < n; ++i) ready.insert(static_cast<int>(events[static_cast<std::size_t>(i)].data));
  }
  for (std::size_t i = 0; i < fds.size(); ++i) {
    const WaitFile& f = s.files[i];
    if (f.ready && *f.ready != ready.contains(fds[i]))
      throw StepFailed{
          (f.channel ? "channel \"" + f.channel->text + "\"" : std::string("the file of asynchronous events")) +
          (*f.ready ? " is not ready" : " is ready")};
  }
  return 0;
}

void StepsProgram::watch(const std::vector<int>& fds, std::uint32_t events) {
  kernel::Process& os = objects_.process().os;
  if (epoll_ < 0) epoll_ = os.epoll_create();
  const auto control = [&](int op, int fd) {
    const int error = os.epoll_ctl(epoll_, op, fd, {events, static_cast<std::uint64_t>(fd)});
    if (error != 0) throw StepFailed{"epoll_ctl: " + errno_name(-error)};
  };
  std::map<int, std::uint32_t> now;
  for (const int fd : fds) {
    const auto old = watched_.find(fd);
    if (old == watched_.end()) control(EPOLL_CTL_ADD, fd);
    else if (old->second != events) control(EPOLL_CTL_MOD, fd);
    now[fd] = events;
  }
  for (const auto& [fd, mask] : watched_)
    if (!now.contains(fd)) control(EPOLL_CTL_DEL, fd);
  watched_ = std::move(now);
}

int StepsProgram::ack(const AckStep& s) {
  ibv_ack_cq_events(objects_.cq(s.cq), s.count);
  return 0;
}

int StepsProgram::get_async_event(const GetAsyncStep& s) {
  if (!readable(objects_.process(), objects_.context()->async_fd, s.timeout)) return ETIMEDOUT;
  ibv_async_event e{};
  if (ibv_get_async_event(objects_.context(), &e) != 0) return errno;
  const std::string object = board_.note_async_event(objects_, e);
  if (s.type && *s.type != e.event_type)
    throw StepFailed{"expected " + std::string(sim::enum_name(*s.type)) + ", got " +
                     std::string(sim::enum_name(e.event_type)) + " on " + object};
  if (!s.object.empty() && s.object.text != object)
    throw StepFailed{"expected an event on \"" + s.object.text + "\", got one on \"" + object + "\""};
  if (s.ack) ibv_ack_async_event(&e);
  else if (StepObjects::Object* o = objects_.find_any(object)) o->async.push_back(e);
  return 0;
}

int StepsProgram::ack_async_events(const Name& object) {
  StepObjects::Object* o = objects_.find_any(object.text);
  if (o == nullptr) throw StepFailed{"\"" + object.text + "\" does not exist at this point"};
  for (ibv_async_event& e : o->async) ibv_ack_async_event(&e);
  o->async.clear();
  return 0;
}

}  // namespace sys
