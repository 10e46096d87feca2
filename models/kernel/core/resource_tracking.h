// SPDX-License-Identifier: Apache-2.0
// The live RDMA objects of a host, per process, as `rdma resource show` lists them. Reading takes no simulated time and
// issues no command.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernel.h"

namespace kernel {

/// Copies the device's QP context (hca::prm::kQpcSize bytes, as QUERY_QP returns it). False if there is no such QP.
using QpContextReader = std::function<bool(std::uint32_t qpn, std::span<std::byte> qpc)>;

struct QpResource {
  std::uint32_t lqpn = 0, rqpn = 0;  ///< rqpn: connected types only
  bool connected = false;
  std::string type, state;  ///< "RC", "RTS", …
  std::uint32_t sq_psn = 0, rq_psn = 0;
  std::uint32_t pdn = 0;  ///< 0: the type has none
  ResourceOwner owner;
};
struct CqResource {
  std::uint32_t cqn = 0, cqe = 0, users = 0, ctxn = 0;
  std::string
      poll_ctx;  ///< who polls: "user"; of kernel consumers "DIRECT", "SOFTIRQ", "WORKQUEUE", or "none" of the core's
  bool adaptive_moderation = false;
  ResourceOwner owner;
};
struct MrResource {
  std::uint32_t mrn = 0, rkey = 0, pdn = 0;
  std::uint64_t iova = 0, mrlen = 0;
  ResourceOwner owner;
};
struct PdResource {
  std::uint32_t pdn = 0, users = 0, ctxn = 0;
  ResourceOwner owner;
};
struct SrqResource {
  std::uint32_t srqn = 0, pdn = 0, cqn = 0;  ///< cqn: XRC only
  std::string type;                          ///< "BASIC" or "XRC"
  std::vector<std::uint32_t> lqpn;           ///< QPs on it
  ResourceOwner owner;
};
struct ContextResource {
  std::uint32_t ctxn = 0;
  ResourceOwner owner;
};

/// All of them, each list in ascending order of numbers. Connection manager ids do not exist.
struct Resources {
  std::string device;
  std::vector<PdResource> pd;
  std::vector<CqResource> cq;
  std::vector<QpResource> qp;
  std::vector<MrResource> mr;
  std::vector<SrqResource> srq;
  std::vector<ContextResource> ctx;
};

/// `read` gives what only the device knows: state and packet sequence numbers. Without it, or for a QP that the device
/// does not have, state is what the driver saw last and sequence numbers are 0.
Resources list_resources(const Kernel& kernel, const QpContextReader& read = nullptr);

}  // namespace kernel
