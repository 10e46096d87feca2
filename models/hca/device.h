// SPDX-License-Identifier: Apache-2.0
// The device's object tables and the seams between its units. Units reach each other's objects through this struct and
// act on them through the interfaces below; only hca.cpp knows all units.
#pragma once

#include <cstdint>
#include <string>

#include "hca/context/icm.h"
#include "hca/context/objects.h"
#include "hca/context/srq.h"
#include "hca/hca_config.h"
#include "hca/transport/multicast.h"
#include "sim/context.h"

namespace hca {

/// A service that one unit of the transport offers to the others and to the command unit.
struct QpControl {
  virtual ~QpControl() = default;
  /// Moves the QP to ERR because of a fault: flushes both queues in order (S-QP-43).
  virtual void enter_error(Qp& qp) = 0;
  /// In SQD, the last message that was started is done (S-QP-50).
  virtual void drained(Qp& qp) = 0;
  /// A send WQE has ended in error: RC goes to ERR; UC and UD go to SQE, where receives go on (S-QP-51).
  virtual void send_failed(Qp& qp) = 0;
  /// A work queue cannot be read from host memory, or its CQ has failed: ERR and a QP_FATAL event, no completion tells it.
  virtual void queue_unreadable(Qp& qp) = 0;
  /// State change by a command has been applied to `qp`: start, stop or reset its engines.
  virtual void state_changed(Qp& qp, QpState from) = 0;
  /// True when no flow works on the QP, so that it can be destroyed.
  virtual bool idle(const Qp& qp) const = 0;
};

/// An entry of the source address table (SET_ROCE_ADDRESS).
struct RoceAddress {
  wire::Gid gid{};
  wire::Mac mac{};
  std::uint8_t version = prm::kRoceVersion2;
};

struct Device {
  Device(sim::Context& ctx, const HcaConfig& cfg, std::int32_t host_index, std::string device_path)
      : context(ctx),
        config(cfg),
        host(host_index),
        path(std::move(device_path)),
        qps(0x100, (1U << cfg.caps.log_max_qp) - 0x100),
        cqs(1, (1U << cfg.caps.log_max_cq) - 1),
        eqs(1, (1U << cfg.caps.log_max_eq) - 1),
        mkeys(0x10, (1U << cfg.caps.log_max_mkey) - 0x10),
        pds(1, (1U << cfg.caps.log_max_pd) - 1),
        srqs(1, (1U << cfg.caps.log_max_srq) - 1),
        xrcds(1, (1U << cfg.caps.log_max_xrcd) - 1) {}

  sim::Context& context;
  const HcaConfig& config;
  const std::int32_t host;
  const std::string path;
  Icm icm;
  ObjectTable<Qp> qps;  // 0 and 1 are special QPs; small numbers are left to firmware
  ObjectTable<Cq> cqs;
  ObjectTable<Eq> eqs;
  ObjectTable<Mkey> mkeys;
  ObjectTable<std::uint32_t> pds;
  ObjectTable<Srq> srqs;
  ObjectTable<std::uint32_t> xrcds;
  bool enabled = false, initialised = false;
  bool port_up = true;
  std::array<std::uint8_t, 6> mac{};
  std::vector<RoceAddress> roce_addresses;
  /// The RoCEv2 source address at `index`; nullptr if there is none. RoCEv1 frames are not built.
  const RoceAddress* roce_v2_address(std::uint32_t index) const {
    if (index >= roce_addresses.size() || roce_addresses[index].version != prm::kRoceVersion2) return nullptr;
    return roce_addresses[index].gid == wire::Gid{} ? nullptr : &roce_addresses[index];
  }
  std::uint8_t max_mtu_code = 5;  ///< from the port's frame size
  MulticastGroups multicast;
};

}  // namespace hca
