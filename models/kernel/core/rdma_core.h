// SPDX-License-Identifier: Apache-2.0
// The RDMA core of a host: its devices and clients, registration and unregistration.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernel/core/client.h"
#include "kernel/core/device.h"
#include "sim/trace/trace.h"

namespace kernel {

class RdmaCore {
 public:
  /// `trace` shows the steps of registrations.
  RdmaCore(Kernel& kernel, sim::trace::Source& trace) : kernel_(kernel), trace_(trace) {}

  /// Clients are told of devices in the order of their coming, and of the end of devices in the opposite one. A client
  /// that comes late is told of the devices that there are; from a kernel thread then.
  void register_client(Client& client);
  /// The client gives back every device that it has.
  void unregister_client(Client& client);

  /// ib_register_device: the device gets a name of this prefix and a number, its attributes and caches are filled, its views
  /// and then its clients appear (S-DEV-7). Blocks the kernel thread that calls. 0 or -errno; `error` says which step
  /// failed, and the device is as before.
  int register_device(Device& device, const std::string& prefix, std::string& error);
  /// ib_unregister_device: clients let go of the device, the last reference is waited for, its views go (S-DEV-8).
  void unregister_device(Device& device);
  /// Gives a registered device another name. -EEXIST: another device has it.
  int rename_device(Device& device, const std::string& name);

  const std::vector<Device*>& devices() const { return devices_; }
  /// Steps that registrations and unregistrations have done so far.
  const std::vector<RegistrationStep>& steps() const { return steps_; }
  /// Does the next step of a device's life: its cost, then its note in the trace.
  void step(RegistrationStep step, sim::Picos cost = {});

 private:
  int fill_caches(Device& device, std::string& error);
  std::string free_name(const std::string& prefix) const;
  void attach(Client& client, Device& device);
  void detach(Client& client, Device& device);

  Kernel& kernel_;
  sim::trace::Source& trace_;
  std::vector<Client*> clients_;
  std::vector<Device*> devices_;
  std::vector<std::pair<Client*, Device*>> attached_;
  std::vector<RegistrationStep> steps_;
  std::uint32_t next_index_ = 0;
};

}  // namespace kernel
