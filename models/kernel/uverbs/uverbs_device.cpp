// SPDX-License-Identifier: Apache-2.0
// Nodes of uverbs appear and go with their RDMA devices. Source: ib_uverbs uverbs_main.c (ib_uverbs_add_one,
// ib_uverbs_remove_one, ib_uverbs_free_hw_resources), rules S-DEV-7 … S-DEV-9.
#include "kernel/uverbs/uverbs_device.h"

#include <algorithm>
#include <cerrno>

namespace kernel {

std::shared_ptr<XrcDomain> UverbsDevice::xrc_domain(std::uint64_t inode) const {
  for (const auto& d : xrc_domains)
    if (d->inode == inode) return d;
  return nullptr;
}

void UverbsDevice::remove_xrc_domain(const XrcDomain& domain) {
  std::erase_if(xrc_domains, [&](const auto& d) { return d.get() == &domain; });
}

int UverbsClient::add(Device& device) {
  if (device.ops.alloc_ucontext == nullptr) return -EOPNOTSUPP;
  auto node = std::make_shared<UverbsDevice>();
  node->device = &device;
  node->name = "uverbs" + std::to_string(device.index);
  devices_.push_back(std::move(node));
  return 0;
}

void UverbsClient::remove(Device& device) {
  const auto it = std::find_if(devices_.begin(), devices_.end(), [&](const auto& d) { return d->device == &device; });
  if (it == devices_.end()) return;
  const std::shared_ptr<UverbsDevice> node = *it;
  devices_.erase(it);  // nobody opens it any more
  std::vector<std::shared_ptr<UverbsFile>> files;
  for (const auto& weak : node->files)
    if (auto file = weak.lock()) files.push_back(std::move(file));
  for (const auto& file : files) file->device_fatal();
  for (const auto& file : files) file->disassociate();
  node->device = nullptr;
}

std::shared_ptr<UverbsFile> UverbsClient::open(std::string_view name, memory::AddressSpace& user,
                                               DescriptorTable& descriptors) {
  const auto it = std::find_if(devices_.begin(), devices_.end(), [&](const auto& d) { return d->name == name; });
  if (it == devices_.end()) return nullptr;
  UverbsDevice& node = **it;
  std::erase_if(node.files, [](const auto& f) { return f.expired(); });
  auto file = std::make_shared<UverbsFile>(*it, user, descriptors);
  node.files.push_back(file);
  return file;
}

}  // namespace kernel
