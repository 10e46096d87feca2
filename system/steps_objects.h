// SPDX-License-Identifier: Apache-2.0
// The verbs objects of one process of step programs: created as declared, found by name, numbers shown to other programs.
#pragma once

#include <infiniband/verbs.h>

#include <map>
#include <string>
#include <vector>

#include "system/host.h"
#include "system/steps_check.h"
#include "system/steps_config.h"

namespace sys {

/// A step did not go as its program says; ends the program.
struct StepFailed {
  std::string message;
};

/// Four addresses of the first byte of an MR (S-MR-30): what the program uses, what keys stand for, what the device uses
/// on the bus, and where the byte is.
struct MrAddresses {
  std::uint64_t addr = 0, iova = 0, dma = 0, phys = 0;
  std::uint32_t lkey = 0, rkey = 0;
};

class StepObjects {
 public:
  /// An object that exists now.
  struct Object {
    std::string name;
    ObjectKind kind{};
    void* handle = nullptr;                 ///< ibv_pd*, ibv_mr*, …
    std::uint64_t sends = 0, receives = 0;  ///< WRs posted: QPs and SRQs
    std::vector<ibv_async_event> async;     ///< events read but not acknowledged
  };
  using GidsOf = std::map<std::uint32_t, ibv_gid>;  ///< by GID index

  StepObjects(const std::string& program, const ProgramConfig& config, Process& process, Host& host);

  /// Opens the device and reads the GIDs of these indices. Throws StepFailed.
  void open(const std::vector<std::uint32_t>& gid_indices);
  /// Creates one declared object: 0 or the errno of the call.
  int create(const std::string& name);
  /// Creates what is declared to exist from the start, address handles apart. Throws StepFailed.
  void create_all(bool address_handles);
  /// 0 or the errno of the call.
  int destroy(const std::string& name);
  /// Destroys what is left, users before what they use, and closes the device. Throws StepFailed.
  void destroy_all();

  /// The object of this name, or the only one declared of the kind. Throws StepFailed when it does not exist now.
  Object& find(const Name& name, ObjectKind kind);
  Object* find_any(const std::string& name);
  /// Name of the object behind a pointer that the library gave, "?" if it is none.
  std::string name_at(const void* handle) const;
  std::string name_of_qp(std::uint32_t qpn) const;

  ibv_pd* pd(const Name& n) { return static_cast<ibv_pd*>(find(n, ObjectKind::pd).handle); }
  ibv_mr* mr(const Name& n) { return static_cast<ibv_mr*>(find(n, ObjectKind::mr).handle); }
  ibv_cq* cq(const Name& n) { return static_cast<ibv_cq*>(find(n, ObjectKind::cq).handle); }
  ibv_qp* qp(const Name& n) { return static_cast<ibv_qp*>(find(n, ObjectKind::qp).handle); }
  ibv_srq* srq(const Name& n) { return static_cast<ibv_srq*>(find(n, ObjectKind::srq).handle); }
  ibv_ah* ah(const Name& n) { return static_cast<ibv_ah*>(find(n, ObjectKind::ah).handle); }
  ibv_mw* mw(const Name& n) { return static_cast<ibv_mw*>(find(n, ObjectKind::mw).handle); }
  ibv_comp_channel* channel(const Name& n) {
    return static_cast<ibv_comp_channel*>(find(n, ObjectKind::channel).handle);
  }
  /// Address that the keys of an MR stand for.
  std::uint64_t base(const ibv_mr* mr) const;
  /// Configuration of a declared QP.
  const QpConfig& qp_config(const std::string& name) const { return config_.qp.at(name); }
  /// Notes what a window is bound to: its new key, and the MR whose addresses it takes.
  void note_bound(const BindConfig& c, std::uint32_t rkey);
  /// The MR that a window is bound to, nullptr if none.
  const ibv_mr* window_mr(const std::string& mw) const;
  const ibv_qp_cap& granted(const ibv_qp* qp) const { return granted_.at(qp); }

  /// Where another program is reached; set when all programs have opened their devices.
  struct Directory {
    virtual ~Directory() = default;
    /// Objects of the process in which a program runs.
    virtual StepObjects& of(const std::string& program) = 0;
  };
  void set_directory(Directory& d) { directory_ = &d; }
  /// "program.name": its process and the name.
  std::pair<StepObjects*, std::string> foreign(const Name& n) const;
  ibv_ah_attr ah_attr(const AhAttrConfig& c, const std::string& default_to) const;

  ibv_context* context() const { return context_; }
  Process& process() { return process_; }
  Host& host() { return host_; }
  const GidsOf& gids() const { return gids_; }
  const ProgramConfig& config() const { return config_; }
  const std::string& program() const { return program_; }
  const std::map<std::string, MrAddresses>& addresses() const { return addresses_; }

 private:
  void* create_mr(const std::string& name, const MrConfig& c);
  void* create_cq(const CqConfig& c);
  void* create_qp(const QpConfig& c);
  void* create_srq(const SrqConfig& c);
  void note_addresses(const std::string& name, const ibv_mr* mr, std::uint64_t iova);
  std::string only(ObjectKind kind) const;

  const std::string program_;
  const ProgramConfig config_;
  Process& process_;
  Host& host_;
  Directory* directory_ = nullptr;
  ibv_context* context_ = nullptr;
  GidsOf gids_;
  std::map<std::string, ObjectKind> kinds_;
  std::map<std::string, Object> objects_;
  std::map<std::string, std::byte*> memory_;  ///< of MRs that have their own
  std::map<const ibv_mr*, std::uint64_t> bases_;
  std::map<const ibv_qp*, ibv_qp_cap> granted_;
  std::map<std::string, MrAddresses> addresses_;
  std::map<std::string, const ibv_mr*> windows_;
};

/// Byte i of a pattern.
constexpr std::byte pattern_byte(std::uint64_t i, std::uint8_t salt) {
  return static_cast<std::byte>(i * 7 + i / 256 + salt);
}
template <class Flag>
unsigned mask_of(const std::vector<Flag>& flags) {
  unsigned mask = 0;
  for (const Flag f : flags) mask |= static_cast<unsigned>(f);
  return mask;
}
/// "EBUSY", "success".
std::string errno_name(int error);

}  // namespace sys
