// SPDX-License-Identifier: Apache-2.0
// Registration and unregistration of a device, one step after the other as in ib_core device.c (ib_register_device,
// __ib_unregister_device). Not modelled: network namespaces, cgroups, the shared CQ pool of kernel consumers.
#include "kernel/core/rdma_core.h"

#include <algorithm>
#include <cerrno>

#include "kernel/kernel.h"
#include "kernel/trace_points.h"

namespace kernel {

void RdmaCore::register_client(Client& client) {
  clients_.push_back(&client);
  for (Device* device : devices_)
    if (device->registered()) attach(client, *device);
}

void RdmaCore::unregister_client(Client& client) {
  for (Device* device : devices_) detach(client, *device);
  std::erase(clients_, &client);
}

void RdmaCore::attach(Client& client, Device& device) {
  charge(kernel_.config().device.client_attach);
  cpu::current().sync();
  if (client.add(device) == 0) attached_.emplace_back(&client, &device);
}

void RdmaCore::detach(Client& client, Device& device) {
  const auto it = std::find(attached_.begin(), attached_.end(), std::pair(&client, &device));
  if (it == attached_.end()) return;
  attached_.erase(it);
  client.remove(device);
}

std::string RdmaCore::free_name(const std::string& prefix) const {
  for (std::uint32_t n = 0;; ++n) {
    std::string name = prefix + std::to_string(n);
    if (std::none_of(devices_.begin(), devices_.end(), [&](const Device* d) { return d->name == name; })) return name;
  }
}

void RdmaCore::step(RegistrationStep s, sim::Picos cost) {
  charge(cost);
  cpu::Thread& t = cpu::current();
  t.sync();
  steps_.push_back(s);
  trace_.instant(trace_points::registration, {}, t.now(), static_cast<std::uint64_t>(s));
}

// The GID cache follows the addresses of the network device; each entry is told to the device.
int RdmaCore::fill_caches(Device& device, std::string& error) {
  for (std::uint32_t i = 0; i < kernel_.config().netdev.pkey_table_length; ++i) {
    std::uint16_t pkey = 0;
    if (const int e = device.ops.query_pkey(device, 1, i, pkey); e != 0) {
      error = "query_pkey failed with errno " + std::to_string(-e);
      return e;
    }
    device.pkeys.push_back(pkey);
  }
  const std::string& address = kernel_.config().netdev.ipv4;
  std::optional<Gid> ipv4;
  if (!address.empty() && !(ipv4 = gid_of_ipv4(address))) {
    error = "netdev.ipv4 is not an IPv4 address: " + address;
    return -EINVAL;
  }
  device.gids.fill(kernel_.caps().mac, ipv4);
  for (std::uint32_t i = 0; i < device.gids.length() && device.ops.add_gid != nullptr; ++i) {
    if (!device.gids.usable(i)) continue;
    const int e = device.ops.add_gid(device, i, device.gids.at(i));
    if (e == -EOPNOTSUPP) break;  // its addresses are fixed
    if (e == 0) continue;
    error = "SET_ROCE_ADDRESS failed with errno " + std::to_string(-e);
    return e;
  }
  return 0;
}

int RdmaCore::register_device(Device& device, const std::string& prefix, std::string& error) {
  const DeviceConfig& cost = kernel_.config().device;
  if (const char* const missing = device.missing_op(); missing != nullptr) {
    error = std::string("the driver lacks the required callback ") + missing;
    return -EINVAL;
  }
  device.name = free_name(prefix);
  device.index = next_index_++;
  devices_.push_back(&device);
  const auto failed = [&](int e) {
    std::erase(devices_, &device);
    device.name.clear();
    return e;
  };
  step(RegistrationStep::name);
  if (const int e = device.ops.query_device(device, device.attr, nullptr); e != 0) {
    error = "query_device failed with errno " + std::to_string(-e);
    return failed(e);
  }
  step(RegistrationStep::query);
  if (const int e = fill_caches(device, error); e != 0) return failed(e);
  step(RegistrationStep::caches);
  step(RegistrationStep::views, cost.views);  // nobody is told yet: the uevent is suppressed
  device.show_views();
  device.enable();
  step(RegistrationStep::registered);
  for (std::size_t i = 0; i < clients_.size(); ++i) attach(*clients_[i], device);
  step(RegistrationStep::clients);
  step(RegistrationStep::uevent, cost.uevent);
  return 0;
}

void RdmaCore::unregister_device(Device& device) {
  if (!device.registered()) return;
  device.disable();
  step(RegistrationStep::unmarked);
  for (std::size_t i = clients_.size(); i-- > 0;) detach(*clients_[i], device);
  step(RegistrationStep::clients_detached);
  device.wait_unreferenced(kernel_.waiters().current());
  step(RegistrationStep::unreferenced);
  device.hide_views();
  device.gids = GidTable(static_cast<std::uint32_t>(device.gids.length()));  // no more GID work
  std::erase(devices_, &device);
  step(RegistrationStep::views_removed);
}

int RdmaCore::rename_device(Device& device, const std::string& name) {
  if (std::any_of(devices_.begin(), devices_.end(), [&](const Device* d) { return d != &device && d->name == name; }))
    return -EEXIST;
  device.name = name;
  for (const auto& [client, attached] : attached_)
    if (attached == &device) client->rename(device);
  return 0;
}

}  // namespace kernel
