// SPDX-License-Identifier: Apache-2.0
// The operations table and the event handlers of a device. Source: ib_core device.c (ib_set_device_ops, verbs.c
// ib_dispatch_event), rule S-DEV-10.
#include "kernel/core/device.h"

#include "cpu/core.h"
#include "kernel/kernel.h"
#include "sim/check.h"

namespace kernel {

Device::Device(Kernel& k) : kernel(k), gids(k.config().netdev.gid_table_length) {}

void Device::set_ops(const DeviceOps& table) {
  DeviceOps::for_each_slot([&](const char*, auto slot, bool) {
    if (ops.*slot == nullptr) ops.*slot = table.*slot;
  });
}

const char* Device::missing_op() const {
  const char* missing = nullptr;
  DeviceOps::for_each_slot([&](const char* name_of_slot, auto slot, bool required) {
    if (missing == nullptr && required && ops.*slot == nullptr) missing = name_of_slot;
  });
  return missing;
}

void Device::enable() {
  registered_ = true;
  references_ = 1;
}

void Device::disable() {
  registered_ = false;
  put();
}

void Device::put() {
  SIM_CHECK(references_ > 0, "a reference of a device given back twice");
  if (--references_ == 0 && unregistering_ != nullptr)
    unregistering_->wake(unregistering_->thread->core().context().now());
}

void Device::wait_unreferenced(Waiter& self) {
  unregistering_ = &self;
  while (references_ != 0) {
    self.announce();
    self.block("users of a device that goes");
  }
  unregistering_ = nullptr;
}

void Device::dispatch_event(ibv_event_type type, std::uint64_t port, sim::trace::Cause cause) {
  for (const auto& [fn, arg] : handlers_) fn(arg, type, port, cause);
}

}  // namespace kernel
