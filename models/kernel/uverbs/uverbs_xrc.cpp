// SPDX-License-Identifier: Apache-2.0
// XRC: domains, which processes share through a file, and target QPs, which belong to their domain: each open is a handle,
// and the QP goes with its last handle. Source: ib_uverbs uverbs_cmd.c (open_xrcd, dealloc_xrcd), ib_core verbs.c
// (ib_open_qp, __ib_destroy_shared_qp), mlx5_ib qp.c (create_xrc_tgt_qp).
#include <fcntl.h>

#include <cerrno>

#include "hca/prm.h"
#include "kernel/mlx5/mlx5_commands.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

namespace prm = hca::prm;

namespace {
constexpr sim::Picos kOpenUnderWay{1'000'000};  // how often an open looks whether another one has made the domain
}

int UverbsFile::open_xrcd(Io& io) {
  const auto cmd = io.request<ib_uverbs_open_xrcd>();
  const int flags = static_cast<int>(cmd.oflags);
  if ((flags & ~(O_CREAT | O_EXCL)) != 0) return -EINVAL;
  if (kernel_.caps().log_max_xrcd == 0) return -EOPNOTSUPP;
  long inode = 0;
  const auto fd = static_cast<int>(cmd.fd);
  if (fd != -1 && (inode = descriptors_.inode(fd)) < 0) return static_cast<int>(inode);
  auto handle = std::make_unique<Xrcd>();
  if (inode != 0) {
    const auto find = [&] { return handle->domain = kernel_.xrc_domain(static_cast<std::uint64_t>(inode)); };
    while (find() != nullptr && handle->domain->xrcdn == 0) cpu::current().sleep(kOpenUnderWay);
    if (handle->domain == nullptr && (flags & O_CREAT) == 0) return -EAGAIN;
    if (handle->domain != nullptr && (flags & O_EXCL) != 0) return -EINVAL;
  }
  if (handle->domain == nullptr) {
    handle->domain = std::make_shared<XrcDomain>();
    handle->domain->inode = static_cast<std::uint64_t>(inode);
    if (inode != 0) kernel_.add_xrc_domain(handle->domain);  // before the command blocks: another open shall find it
    if (const int error = alloc_xrcd(kernel_.commands(), handle->domain->xrcdn); error != 0) {
      if (inode != 0) kernel_.remove_xrc_domain(*handle->domain);
      return error == -EAGAIN ? -ENOMEM : error;
    }
  }
  if (inode != 0) ++handle->domain->members;
  handle->user_handle = 0;
  io.respond(ib_uverbs_open_xrcd_resp{add(std::move(handle))});
  return 0;
}

int UverbsFile::close_xrcd(Io& io) { return destroy(ObjectType::xrcd, io.request<ib_uverbs_close_xrcd>().xrcd_handle); }

// A domain that another process has open, or that has members left there, stays.
int UverbsFile::tear_down_xrcd(Xrcd& xrcd) {
  XrcDomain& d = *xrcd.domain;
  if (d.inode != 0 && --d.members != 0) return 0;
  if (d.inode != 0) kernel_.remove_xrc_domain(d);  // before the command blocks: nobody shall open it any more
  const int error = dealloc_xrcd(kernel_.commands(), d.xrcdn);
  if (error != 0 && d.inode != 0) {
    ++d.members;
    kernel_.add_xrc_domain(xrcd.domain);
  }
  return error;
}

// An XRC_RECV QP has neither rings nor CQs nor a PD of its own: all come with the SRQ that a packet names.
int UverbsFile::create_xrc_target(const ib_uverbs_create_qp& cmd, const mlx5_ib_create_qp& user, Io& io) {
  Use<Xrcd> xrcd;
  if (const int error = parent(ObjectType::xrcd, cmd.pd_handle, xrcd); error != 0) return error;
  if (user.uidx > 0xffffff) return -EINVAL;
  auto real = std::make_shared<Qp>();
  real->qp_type = IBV_QPT_XRC_RECV;
  real->user_index = user.uidx;
  real->domain = xrcd->domain;
  std::array<std::byte, prm::kQpcSize> qpc{};
  build_qpc(*real, qpc);
  if (const int error = kernel::create_qp(kernel_.commands(), qpc, {}, real->qpn); error != 0)
    return error == -EAGAIN ? -ENOMEM : error;
  ++real->domain->members;
  real->domain->targets[real->qpn] = real;
  kernel_.add_qp(*real);
  ib_uverbs_create_qp_resp resp{};
  resp.qpn = real->qpn;
  resp.qp_handle = add_target_handle(real, *xrcd, cmd.user_handle);
  io.respond(resp);
  io.driver_respond(mlx5_ib_create_qp_resp{});
  return 0;
}

int UverbsFile::open_qp(Io& io) {
  const auto cmd = io.request<ib_uverbs_open_qp>();
  Use<Xrcd> xrcd;
  if (const int error = parent(ObjectType::xrcd, cmd.pd_handle, xrcd); error != 0) return error;
  if (cmd.qp_type != IBV_QPT_XRC_RECV) return -EINVAL;
  const auto it = xrcd->domain->targets.find(cmd.qpn);
  if (it == xrcd->domain->targets.end()) return -EINVAL;
  ib_uverbs_create_qp_resp resp{};
  resp.qpn = cmd.qpn;
  resp.qp_handle = add_target_handle(it->second, *xrcd, cmd.user_handle);
  io.respond(resp);
  return 0;
}

std::uint32_t UverbsFile::add_target_handle(const std::shared_ptr<Qp>& real, Xrcd& xrcd, std::uint64_t user_handle) {
  auto handle = std::make_unique<Qp>();
  handle->qp_type = IBV_QPT_XRC_RECV;
  handle->qpn = real->qpn;
  handle->real = real;
  handle->xrcd = &xrcd;
  handle->async = async_;
  handle->user_handle = user_handle;
  ++xrcd.usecnt;
  real->handles.push_back(handle.get());
  return add(std::move(handle));
}

int UverbsFile::close_target(Qp& handle) {
  Qp& real = *handle.real;
  std::erase(real.handles, &handle);
  if (real.handles.empty()) {
    real.domain->targets.erase(real.qpn);  // nobody can open it any more
    if (const int error = destroy_device_qp(real); error != 0) {
      real.domain->targets[real.qpn] = handle.real;
      real.handles.push_back(&handle);
      return error;
    }
    kernel_.remove_qp(real);
    --real.domain->members;
  }
  handle.async->drop(&handle);
  --handle.xrcd->usecnt;
  return 0;
}

}  // namespace kernel
