// SPDX-License-Identifier: Apache-2.0
// ATTACH_MCAST and DETACH_MCAST: UD queue pairs join multicast groups; each membership counts as a use of the QP, so that
// it cannot be destroyed (S-OBJ-20, S-UD-8). Source: ib_uverbs uverbs_cmd.c.
#include <cerrno>

#include "kernel/core/verbs.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {
namespace {
Gid group_of(const std::uint8_t* raw) {
  Gid group;
  std::memcpy(group.data(), raw, group.size());
  return group;
}
}  // namespace

// The LID means nothing on Ethernet.
int UverbsFile::attach_mcast(Io& io) {
  const auto cmd = io.request<ib_uverbs_attach_mcast>();
  Use<Qp> qp;
  if (const int error = use(ObjectType::qp, cmd.qp_handle, qp); error != 0) return error;
  return ib_attach_mcast(*qp, group_of(cmd.gid));
}

int UverbsFile::detach_mcast(Io& io) {
  const auto cmd = io.request<ib_uverbs_detach_mcast>();
  Use<Qp> qp;
  if (const int error = use(ObjectType::qp, cmd.qp_handle, qp); error != 0) return error;
  return ib_detach_mcast(*qp, group_of(cmd.gid));
}

// A file that is closed leaves every group, so that its QPs can go.
void UverbsFile::leave_all_groups() {
  for (const auto& [handle, object] : objects_) {
    if (object->type != ObjectType::qp) continue;
    auto& qp = static_cast<Qp&>(*object);
    while (!qp.groups.empty() && ib_detach_mcast(qp, Gid(qp.groups.back())) == 0) {}
  }
}

}  // namespace kernel
