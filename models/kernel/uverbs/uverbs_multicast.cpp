// SPDX-License-Identifier: Apache-2.0
// ATTACH_MCAST and DETACH_MCAST: UD queue pairs join multicast groups; each membership counts as a use of the QP, so that
// it cannot be destroyed (S-OBJ-20, S-UD-8). Source: ib_uverbs uverbs_cmd.c, ib_core verbs.c (ib_attach_mcast).
#include <algorithm>
#include <cerrno>

#include "kernel/mlx5/mlx5_commands.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {
namespace {
Gid group_of(const std::uint8_t* raw) {
  Gid group;
  std::memcpy(group.data(), raw, group.size());
  return group;
}
}  // namespace

// Attaching twice is the same as once. The LID means nothing on Ethernet.
int UverbsFile::attach_mcast(Io& io) {
  const auto cmd = io.request<ib_uverbs_attach_mcast>();
  const Gid group = group_of(cmd.gid);
  Use<Qp> qp;
  if (const int error = use(ObjectType::qp, cmd.qp_handle, qp); error != 0) return error;
  if (std::find(qp->groups.begin(), qp->groups.end(), group) != qp->groups.end()) return 0;
  if (qp->qp_type != IBV_QPT_UD || !multicast_mac(group)) return -EINVAL;
  if (const int error = attach_to_group(kernel_.commands(), qp->qpn, group); error != 0)
    return error == -EAGAIN ? -ENOMEM : error;
  qp->groups.push_back(group);
  ++qp->usecnt;
  return 0;
}

int UverbsFile::detach_mcast(Io& io) {
  const auto cmd = io.request<ib_uverbs_detach_mcast>();
  Use<Qp> qp;
  if (const int error = use(ObjectType::qp, cmd.qp_handle, qp); error != 0) return error;
  return leave_group(*qp, group_of(cmd.gid));
}

int UverbsFile::leave_group(Qp& qp, const Gid& group) {
  const auto at = std::find(qp.groups.begin(), qp.groups.end(), group);
  if (at == qp.groups.end()) return -EINVAL;
  if (const int error = detach_from_group(kernel_.commands(), qp.qpn, group); error != 0) return error;
  qp.groups.erase(at);
  --qp.usecnt;
  return 0;
}

// A file that is closed leaves every group, so that its QPs can go.
void UverbsFile::leave_all_groups() {
  for (const auto& [handle, object] : objects_) {
    if (object->type != ObjectType::qp) continue;
    auto& qp = static_cast<Qp&>(*object);
    while (!qp.groups.empty() && leave_group(qp, Gid(qp.groups.back())) == 0) {}
  }
}

}  // namespace kernel
