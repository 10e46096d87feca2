// SPDX-License-Identifier: Apache-2.0
// A client of the RDMA core (ib_client): uverbs, or an upper-layer protocol. It is told of every device.
#pragma once

namespace kernel {

class Device;

struct Client {
  virtual ~Client() = default;
  /// The device is registered and may be used from now on. 0, or -errno: this client goes without the device.
  virtual int add(Device& device) = 0;
  /// The device goes. When this returns, nothing of the client uses it any more; blocks the calling thread.
  virtual void remove(Device& device) = 0;
  virtual void rename(Device& /*device*/) {}
};

}  // namespace kernel
