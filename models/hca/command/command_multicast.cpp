// SPDX-License-Identifier: Apache-2.0
// ATTACH_TO_MCG and DETACH_FROM_MCG: UD queue pairs join and leave multicast groups (S-UD-8).
#include <cstring>

#include "hca/command/command_unit.h"

namespace hca {
namespace {
wire::Gid group_of(const std::byte* in) {
  wire::Gid group;
  std::memcpy(group.data(), in + prm::kMcgGid, group.size());
  return group;
}
}  // namespace

CommandUnit::Status CommandUnit::attach_to_mcg(Command& c) {
  const Qp* qp = device_.qps.find(object(c));
  if (qp == nullptr) return prm::kCmdBadRes;
  if (qp->service != prm::kStUd) return prm::kCmdBadParam;
  return device_.multicast.attach(group_of(c.in.data()), qp->qpn) ? prm::kCmdOk : prm::kCmdNoRes;
}

CommandUnit::Status CommandUnit::detach_from_mcg(Command& c) {
  return device_.multicast.detach(group_of(c.in.data()), object(c)) ? prm::kCmdOk : prm::kCmdBadParam;
}

}  // namespace hca
