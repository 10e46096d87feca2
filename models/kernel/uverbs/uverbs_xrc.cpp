// SPDX-License-Identifier: Apache-2.0
// XRC: domains, which processes share through a file, and target QPs, which belong to their domain: each open is a handle.
// Source: ib_uverbs uverbs_cmd.c (open_xrcd, dealloc_xrcd, open_qp).
#include <fcntl.h>

#include <cerrno>

#include "kernel/core/verbs.h"
#include "kernel/uverbs/uverbs_device.h"

namespace kernel {

namespace {
constexpr sim::Picos kOpenUnderWay{1'000'000};  // how often an open looks whether another one has made the domain
}

int UverbsFile::open_xrcd(Io& io) {
  const auto cmd = io.request<ib_uverbs_open_xrcd>();
  const int flags = static_cast<int>(cmd.oflags);
  if ((flags & ~(O_CREAT | O_EXCL)) != 0) return -EINVAL;
  if (device_->ops.alloc_xrcd == nullptr) return -EOPNOTSUPP;
  long inode = 0;
  const auto fd = static_cast<int>(cmd.fd);
  if (fd != -1 && (inode = descriptors_.inode(fd)) < 0) return static_cast<int>(inode);
  auto handle = std::make_unique<Xrcd>();
  if (inode != 0) {
    const auto find = [&] { return handle->domain = node_->xrc_domain(static_cast<std::uint64_t>(inode)); };
    while (find() != nullptr && handle->domain->xrcdn == 0) cpu::current().sleep(kOpenUnderWay);
    if (handle->domain == nullptr && (flags & O_CREAT) == 0) return -EAGAIN;
    if (handle->domain != nullptr && (flags & O_EXCL) != 0) return -EINVAL;
  }
  if (handle->domain == nullptr) {
    handle->domain = std::make_shared<XrcDomain>();
    handle->domain->device = device_;
    handle->domain->inode = static_cast<std::uint64_t>(inode);
    if (inode != 0)
      node_->xrc_domains.push_back(handle->domain);  // before the command blocks: another open shall find it
    if (const int error = ib_alloc_xrcd(*handle->domain, &io.udata); error != 0) {
      if (inode != 0) node_->remove_xrc_domain(*handle->domain);
      return error;
    }
  }
  if (inode != 0) ++handle->domain->members;
  handle->device = device_;
  handle->ucontext = ucontext_.get();
  handle->owner = ucontext_->owner;
  device_->track(*handle);
  io.respond(ib_uverbs_open_xrcd_resp{add(std::move(handle))});
  return 0;
}

int UverbsFile::close_xrcd(Io& io) { return destroy(ObjectType::xrcd, io.request<ib_uverbs_close_xrcd>().xrcd_handle); }

// A domain that another process has open, or that has members left there, stays.
int UverbsFile::tear_down_xrcd(Xrcd& xrcd) {
  XrcDomain& d = *xrcd.domain;
  if (d.inode != 0 && --d.members != 0) {
    device_->untrack(xrcd);
    return 0;
  }
  if (d.inode != 0) node_->remove_xrc_domain(d);  // before the command blocks: nobody shall open it any more
  const int error = ib_dealloc_xrcd(d);
  if (error != 0 && d.inode != 0) {
    ++d.members;
    node_->xrc_domains.push_back(xrcd.domain);
  }
  if (error == 0) device_->untrack(xrcd);
  return error;
}

int UverbsFile::create_xrc_target(const ib_uverbs_create_qp& cmd, Io& io) {
  Use<Xrcd> xrcd;
  if (const int error = parent(ObjectType::xrcd, cmd.pd_handle, xrcd); error != 0) return error;
  std::unique_ptr<Qp> handle;
  QpInitAttr attr;
  attr.qp_type = IBV_QPT_XRC_RECV;
  if (const int error = ib_create_xrc_target(*xrcd, attr, consumer(), &io.udata, handle); error != 0) return error;
  ib_uverbs_create_qp_resp resp{};
  resp.qpn = handle->qpn;
  resp.qp_handle = add(std::move(handle), cmd.user_handle);
  io.respond(resp);
  return 0;
}

int UverbsFile::open_qp(Io& io) {
  const auto cmd = io.request<ib_uverbs_open_qp>();
  Use<Xrcd> xrcd;
  if (const int error = parent(ObjectType::xrcd, cmd.pd_handle, xrcd); error != 0) return error;
  if (cmd.qp_type != IBV_QPT_XRC_RECV) return -EINVAL;
  std::unique_ptr<Qp> handle;
  if (const int error = ib_open_qp(*xrcd, cmd.qpn, consumer(), handle); error != 0) return error;
  ib_uverbs_create_qp_resp resp{};
  resp.qpn = cmd.qpn;
  resp.qp_handle = add(std::move(handle), cmd.user_handle);
  io.respond(resp);
  return 0;
}

}  // namespace kernel
