// SPDX-License-Identifier: Apache-2.0
// Creation and destruction through the verbs API alone. Memory of MRs comes from the process' arena and lives until the
// process ends, so that a region can be registered again.
#include "system/steps_objects.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernel/core/objects.h"
#include "kernel/mlx5/objects.h"
#include "kernel/uverbs/uverbs_file.h"

namespace sys {
namespace {

template <class M>
void note_kinds(std::map<std::string, ObjectKind>& kinds, const M& declared, ObjectKind kind) {
  for (const auto& [name, config] : declared) kinds[name] = kind;
}

/// What a call that returns a pointer says by it.
int error_of(const void* made) { return made != nullptr ? 0 : errno != 0 ? errno : EIO; }

/// Order of creation; destruction is the reverse.
constexpr ObjectKind kOrder[] = {ObjectKind::pd,  ObjectKind::mr, ObjectKind::channel, ObjectKind::cq,
                                 ObjectKind::srq, ObjectKind::qp, ObjectKind::ah,      ObjectKind::mw};

}  // namespace

std::string errno_name(int error) {
  if (error == 0) return "success";
  const char* name = strerrorname_np(error);
  return name != nullptr ? name : "error " + std::to_string(error);
}

StepObjects::StepObjects(const std::string& program, const ProgramConfig& config, Process& process, Host& host)
    : program_(program), config_(config), process_(process), host_(host) {
  note_kinds(kinds_, config_.pd, ObjectKind::pd);
  if (config_.pd.empty()) kinds_["pd"] = ObjectKind::pd;
  note_kinds(kinds_, config_.mr, ObjectKind::mr);
  note_kinds(kinds_, config_.channel, ObjectKind::channel);
  note_kinds(kinds_, config_.cq, ObjectKind::cq);
  note_kinds(kinds_, config_.srq, ObjectKind::srq);
  note_kinds(kinds_, config_.qp, ObjectKind::qp);
  note_kinds(kinds_, config_.ah, ObjectKind::ah);
  note_kinds(kinds_, config_.mw, ObjectKind::mw);
}

void StepObjects::open(const std::vector<std::uint32_t>& gid_indices) {
  int n = 0;
  ibv_device** list = ibv_get_device_list(&n);
  if (list == nullptr || n == 0) throw StepFailed{"ibv_get_device_list: there is no device"};
  context_ = ibv_open_device(list[0]);
  if (context_ == nullptr) throw StepFailed{"ibv_open_device: " + errno_name(errno)};
  ibv_free_device_list(list);
  for (const std::uint32_t i : gid_indices) {
    ibv_gid gid{};
    if (ibv_query_gid(context_, 1, static_cast<int>(i), &gid) == 0) gids_[i] = gid;
  }
}

std::string StepObjects::only(ObjectKind kind) const {
  for (const auto& [name, k] : kinds_)
    if (k == kind) return name;
  return {};
}

StepObjects::Object& StepObjects::find(const Name& name, ObjectKind kind) {
  const std::string key = name.empty() ? only(kind) : name.text;
  const auto it = objects_.find(key);
  if (it == objects_.end() || it->second.kind != kind)
    throw StepFailed{std::string(sys::name_of(kind)) + " \"" + key + "\" does not exist at this point"};
  return it->second;
}

StepObjects::Object* StepObjects::find_any(const std::string& name) {
  const auto it = objects_.find(name);
  return it == objects_.end() ? nullptr : &it->second;
}

std::string StepObjects::name_at(const void* handle) const {
  for (const auto& [name, o] : objects_)
    if (o.handle == handle) return name;
  return "?";
}

std::string StepObjects::name_of_qp(std::uint32_t qpn) const {
  for (const auto& [name, o] : objects_)
    if (o.kind == ObjectKind::qp && static_cast<ibv_qp*>(o.handle)->qp_num == qpn) return name;
  return "?";
}

void StepObjects::note_bound(const BindConfig& c, std::uint32_t rkey) {
  Object& window = find(c.mw, ObjectKind::mw);
  static_cast<ibv_mw*>(window.handle)->rkey = rkey;
  windows_[window.name] = mr(c.mr);
}

const ibv_mr* StepObjects::window_mr(const std::string& mw) const {
  const auto it = windows_.find(mw);
  return it == windows_.end() ? nullptr : it->second;
}

std::uint64_t StepObjects::base(const ibv_mr* mr) const { return bases_.at(mr); }

std::pair<StepObjects*, std::string> StepObjects::foreign(const Name& n) const {
  const std::size_t dot = n.text.find('.');
  return {&directory_->of(n.text.substr(0, dot)), n.text.substr(dot + 1)};
}

ibv_ah_attr StepObjects::ah_attr(const AhAttrConfig& c, const std::string& default_to) const {
  ibv_ah_attr a{};
  a.is_global = c.is_global;
  a.port_num = static_cast<std::uint8_t>(c.port_num);
  a.sl = static_cast<std::uint8_t>(c.sl);
  a.grh.sgid_index = static_cast<std::uint8_t>(c.sgid_index);
  a.grh.hop_limit = static_cast<std::uint8_t>(c.hop_limit);
  a.grh.traffic_class = static_cast<std::uint8_t>(c.traffic_class);
  a.grh.flow_label = c.flow_label;
  const std::string to = c.to.empty() ? default_to : c.to.text;
  if (!c.dgid.empty()) {
    if (inet_pton(AF_INET6, c.dgid.c_str(), a.grh.dgid.raw) != 1)
      throw StepFailed{"\"" + c.dgid + "\" is not an IPv6 address"};
  } else if (!to.empty()) {
    const GidsOf& gids = directory_->of(to).gids();
    if (const auto g = gids.find(c.sgid_index); g != gids.end()) a.grh.dgid = g->second;
  }
  return a;
}

void* StepObjects::create_mr(const std::string& name, const MrConfig& c) {
  const std::string& owner = c.memory_of.empty() ? name : c.memory_of.text;
  std::byte*& memory = memory_[owner];
  if (memory == nullptr) {
    const MrConfig& o = config_.mr.at(owner);
    const std::size_t bytes = std::max<std::size_t>(o.offset.n + o.size.n, 1);
    memory = static_cast<std::byte*>(process_.space.alloc(bytes, 4096));
    if (memory == nullptr) throw StepFailed{"no memory is left for MR \"" + owner + "\""};
    if (o.pattern)
      for (std::size_t i = 0; i < o.size.n; ++i) memory[o.offset.n + i] = pattern_byte(i, *o.pattern);
  }
  std::byte* at = memory + c.offset.n;
  const int access = static_cast<int>(mask_of(c.access));
  ibv_mr* mr =
      c.iova ? ibv_reg_mr_iova(pd(c.pd), at, c.size.n, *c.iova, access) : ibv_reg_mr(pd(c.pd), at, c.size.n, access);
  if (mr == nullptr) return nullptr;
  bases_[mr] = c.iova ? *c.iova : reinterpret_cast<std::uint64_t>(at);
  note_addresses(name, mr, bases_[mr]);
  return mr;
}

void StepObjects::note_addresses(const std::string& name, const ibv_mr* mr, std::uint64_t iova) {
  MrAddresses a;
  a.addr = reinterpret_cast<std::uint64_t>(mr->addr);
  a.iova = iova;
  a.lkey = mr->lkey;
  a.rkey = mr->rkey;
  if (const auto t = process_.space.translate({a.addr})) a.phys = t->phys.v;
  const kernel::UverbsFile* file = process_.os.context(context_->cmd_fd);
  const kernel::Mlx5Mr* object = file != nullptr ? file->inspect<kernel::Mlx5Mr>(mr->handle) : nullptr;
  if (object != nullptr && !object->region.mapping.empty())
    a.dma = object->region.mapping.pages.front().v + a.addr % memory::kPageSize;
  addresses_[name] = a;
}

void* StepObjects::create_cq(const CqConfig& c) {
  ibv_comp_channel* events = c.channel.empty() ? nullptr : channel(c.channel);
  if (!c.ignore_overrun) return ibv_create_cq(context_, c.cqe, nullptr, events, static_cast<int>(c.comp_vector));
  ibv_cq_init_attr_ex attr{};
  attr.cqe = static_cast<std::uint32_t>(c.cqe);
  attr.channel = events;
  attr.comp_vector = c.comp_vector;
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  ibv_cq_ex* cq = ibv_create_cq_ex(context_, &attr);
  return cq != nullptr ? ibv_cq_ex_to_cq(cq) : nullptr;
}

void* StepObjects::create_qp(const QpConfig& c) {
  ibv_qp_init_attr init{};
  init.send_cq = cq(c.send_cq.empty() ? c.cq : c.send_cq);
  init.recv_cq = cq(c.recv_cq.empty() ? c.cq : c.recv_cq);
  init.srq = c.srq.empty() ? nullptr : srq(c.srq);
  init.qp_type = c.type;
  init.sq_sig_all = c.sq_sig_all;
  init.cap = {c.max_send_wr, c.max_recv_wr, c.max_send_sge, c.max_recv_sge, c.max_inline_data};
  ibv_qp* qp = ibv_create_qp(pd(c.pd), &init);
  if (qp != nullptr) granted_[qp] = init.cap;
  return qp;
}

void* StepObjects::create_srq(const SrqConfig& c) {
  ibv_srq_init_attr init{};
  init.attr = {c.max_wr, c.max_sge, c.srq_limit};
  ibv_srq* srq = ibv_create_srq(pd(c.pd), &init);
  if (srq == nullptr || c.srq_limit == 0) return srq;
  // The limit of the creation attributes is ignored (ibv_create_srq); it is armed by a modify.
  ibv_srq_attr attr{};
  attr.srq_limit = c.srq_limit;
  if (const int e = ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT)) throw StepFailed{"ibv_modify_srq: " + errno_name(e)};
  return srq;
}

int StepObjects::create(const std::string& name) {
  if (objects_.contains(name)) throw StepFailed{"\"" + name + "\" exists already"};
  errno = 0;
  void* made = nullptr;
  const ObjectKind kind = kinds_.at(name);
  switch (kind) {
    case ObjectKind::pd:
      made = ibv_alloc_pd(context_);
      break;
    case ObjectKind::mr:
      made = create_mr(name, config_.mr.at(name));
      break;
    case ObjectKind::channel:
      made = ibv_create_comp_channel(context_);
      break;
    case ObjectKind::cq:
      made = create_cq(config_.cq.at(name));
      break;
    case ObjectKind::srq:
      made = create_srq(config_.srq.at(name));
      break;
    case ObjectKind::qp:
      made = create_qp(config_.qp.at(name));
      break;
    case ObjectKind::ah: {
      const AhConfig& c = config_.ah.at(name);
      ibv_ah_attr attr = ah_attr(c.attr, {});
      made = ibv_create_ah(pd(c.pd), &attr);
      break;
    }
    case ObjectKind::mw: {
      const MwConfig& c = config_.mw.at(name);
      made = ibv_alloc_mw(pd(c.pd), c.type);
      break;
    }
  }
  if (made != nullptr) objects_[name] = {name, kind, made, 0, 0, {}};
  return error_of(made);
}

void StepObjects::create_all(bool address_handles) {
  const auto at_start = [&](const std::string& name, ObjectKind kind) {
    switch (kind) {
      case ObjectKind::pd:
        return config_.pd.empty() || config_.pd.at(name).at_start;
      case ObjectKind::mr:
        return config_.mr.at(name).at_start;
      case ObjectKind::channel:
        return config_.channel.at(name).at_start;
      case ObjectKind::cq:
        return config_.cq.at(name).at_start;
      case ObjectKind::srq:
        return config_.srq.at(name).at_start;
      case ObjectKind::qp:
        return config_.qp.at(name).at_start;
      case ObjectKind::ah:
        return config_.ah.at(name).at_start;
      case ObjectKind::mw:
        return config_.mw.at(name).at_start;
    }
    return false;
  };
  for (const ObjectKind kind : kOrder) {
    if ((kind == ObjectKind::ah) != address_handles) continue;
    for (const auto& [name, k] : kinds_) {
      if (k != kind || !at_start(name, kind)) continue;
      if (const int e = create(name))
        throw StepFailed{"cannot create " + std::string(sys::name_of(kind)) + " \"" + name + "\": " + errno_name(e)};
    }
  }
}

int StepObjects::destroy(const std::string& name) {
  const auto it = objects_.find(name);
  if (it == objects_.end()) throw StepFailed{"\"" + name + "\" does not exist at this point"};
  void* const handle = it->second.handle;
  int error = 0;
  switch (it->second.kind) {
    case ObjectKind::pd:
      error = ibv_dealloc_pd(static_cast<ibv_pd*>(handle));
      break;
    case ObjectKind::mr:
      error = ibv_dereg_mr(static_cast<ibv_mr*>(handle));
      break;
    case ObjectKind::channel:
      error = ibv_destroy_comp_channel(static_cast<ibv_comp_channel*>(handle));
      break;
    case ObjectKind::cq:
      error = ibv_destroy_cq(static_cast<ibv_cq*>(handle));
      break;
    case ObjectKind::srq:
      error = ibv_destroy_srq(static_cast<ibv_srq*>(handle));
      break;
    case ObjectKind::qp:
      error = ibv_destroy_qp(static_cast<ibv_qp*>(handle));
      break;
    case ObjectKind::ah:
      error = ibv_destroy_ah(static_cast<ibv_ah*>(handle));
      break;
    case ObjectKind::mw:
      error = ibv_dealloc_mw(static_cast<ibv_mw*>(handle));
      break;
  }
  if (error == 0) objects_.erase(name);
  return error;
}

void StepObjects::destroy_all() {
  for (auto kind = std::rbegin(kOrder); kind != std::rend(kOrder); ++kind) {
    std::vector<std::string> names;
    for (const auto& [name, o] : objects_)
      if (o.kind == *kind) names.push_back(name);
    for (const std::string& name : names)
      if (const int e = destroy(name))
        throw StepFailed{"cannot destroy " + std::string(sys::name_of(*kind)) + " \"" + name +
                         "\" at the end: " + errno_name(e)};
  }
  ibv_close_device(context_);
}

}  // namespace sys
