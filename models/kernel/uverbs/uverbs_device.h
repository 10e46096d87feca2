// SPDX-License-Identifier: Apache-2.0
// uverbs as a client of the RDMA core: one character device per RDMA device, and who has it open.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/core/client.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

/// /dev/infiniband/uverbsN. It outlives its RDMA device as long as it is open.
struct UverbsDevice {
  Device* device = nullptr;  ///< null when the RDMA device is gone
  std::string name;          ///< "uverbs0"
  std::vector<std::weak_ptr<UverbsFile>> files;
  std::vector<std::shared_ptr<XrcDomain>> xrc_domains;  ///< those of files

  /// The XRC domain of a file; null if there is none.
  std::shared_ptr<XrcDomain> xrc_domain(std::uint64_t inode) const;
  void remove_xrc_domain(const XrcDomain& domain);
};

class UverbsClient final : public Client {
 public:
  int add(Device& device) override;
  /// Every file is told DEVICE_FATAL, then its objects are destroyed, then its readers are woken (S-DEV-9).
  void remove(Device& device) override;

  /// open(2) of a node by its name; null if there is none (any more).
  std::shared_ptr<UverbsFile> open(std::string_view name, memory::AddressSpace& user, DescriptorTable& descriptors);
  const std::vector<std::shared_ptr<UverbsDevice>>& devices() const { return devices_; }

 private:
  std::vector<std::shared_ptr<UverbsDevice>> devices_;
};

}  // namespace kernel
