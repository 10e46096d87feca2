// SPDX-License-Identifier: Apache-2.0
// Attributes as the RDMA core and mlx5_ib print them. A device has them from the creation of its views to their removal (S-DEV-7); reading an empty entry of
// the GID table gives zeros, reading its type or network device fails. Source: ib_core sysfs.c, ib_uverbs, mlx5_ib.
#include "kernel/sysfs.h"

#include <cstdio>

#include "kernel/kernel.h"
#include "kernel/uverbs/uverbs_device.h"

namespace kernel {

namespace {

std::string guid(std::uint64_t v) {
  char text[24];
  std::snprintf(text, sizeof text, "%04x:%04x:%04x:%04x", static_cast<unsigned>(v >> 48),
                static_cast<unsigned>(v >> 32 & 0xffff), static_cast<unsigned>(v >> 16 & 0xffff),
                static_cast<unsigned>(v & 0xffff));
  return text;
}

std::string print(const char* format, std::uint32_t a, std::uint32_t b = 0, std::uint32_t c = 0) {
  char text[128];
  std::snprintf(text, sizeof text, format, a, b, c);
  return text;
}

void add_port(const Kernel& kernel, const std::string& dir, std::map<std::string, std::string>& out) {
  const auto put = [&](const std::string& name, const std::string& value) { out[dir + name] = value + "\n"; };
  put("state", kernel.carrier() ? "4: ACTIVE" : "1: DOWN");
  put("phys_state", kernel.carrier() ? "5: LinkUp" : "3: Disabled");
  put("link_layer", "Ethernet");
  put("lid", "0x0");
  put("sm_lid", "0x0");
  put("sm_sl", "0");
  put("lid_mask_count", "0");
  put("cap_mask", "0x00010000");
  put("rate", "100 Gb/sec (4X EDR)");
  for (std::size_t i = 0; i < kernel.device().pkeys.size(); ++i)
    put("pkeys/" + std::to_string(i), print("0x%04x", kernel.device().pkeys[i]));
  for (std::size_t i = 0; i < kernel.device().gids.length(); ++i) {
    const GidEntry& e = kernel.device().gids.at(i);
    const std::string index = std::to_string(i);
    put("gids/" + index, to_string(e.gid));
    if (!e.valid) continue;
    put("gid_attrs/types/" + index, e.type == GidType::roce_v2 ? "RoCE v2" : "IB/RoCE v1");
    put("gid_attrs/ndevs/" + index, "eth0");
  }
}

}  // namespace

std::map<std::string, std::string> sysfs_attributes(const Kernel& kernel) {
  std::map<std::string, std::string> out;
  const std::string uv = "class/infiniband_verbs/";
  out[uv + "abi_version"] = "6\n";  // of the module, device or not
  if (kernel.device_removed() || !kernel.device().visible()) return out;
  const DeviceCaps& caps = kernel.caps();
  const Device& device = kernel.device();
  const std::string ib = "class/infiniband/" + device.name + "/";
  const std::string modalias = print("pci:v000015B3d%08Xsv000015B3sd00000008bc02sc00i00", caps.vendor_part_id);
  out[ib + "node_type"] = "1: CA\n";
  out[ib + "node_guid"] = guid(caps.node_guid) + "\n";
  out[ib + "sys_image_guid"] = guid(caps.node_guid) + "\n";
  out[ib + "fw_ver"] = print("%u.%u.%04u\n", caps.fw_major, caps.fw_minor, caps.fw_sub);
  out[ib + "node_desc"] = "rdmasim " + device.name + "\n";
  out[ib + "hca_type"] = print("MT%u\n", caps.vendor_part_id);
  out[ib + "hw_rev"] = "0\n";
  out[ib + "board_id"] = "MT_0000000008\n";
  out[ib + "device/modalias"] = modalias + "\n";
  for (std::uint32_t port = 1; port <= caps.num_ports; ++port)
    add_port(kernel, ib + "ports/" + std::to_string(port) + "/", out);
  for (const auto& node : kernel.uverbs().devices()) {
    const std::string dir = uv + node->name + "/";
    out[dir + "dev"] = print("231:%u\n", 192 + node->device->index);
    out[dir + "ibdev"] = node->device->name + "\n";
    out[dir + "abi_version"] = "1\n";
    out[dir + "device/modalias"] = modalias + "\n";
  }
  return out;
}

namespace {
std::string_view below_sys(std::string_view path) {
  constexpr std::string_view kRoot = "/sys/";
  if (path.substr(0, kRoot.size()) == kRoot) path.remove_prefix(kRoot.size());
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  return path;
}
}  // namespace

std::optional<std::string> sysfs_read(const Kernel& kernel, std::string_view path) {
  const auto all = sysfs_attributes(kernel);
  const auto it = all.find(std::string(below_sys(path)));
  return it == all.end() ? std::nullopt : std::optional(it->second);
}

std::vector<std::string> sysfs_list(const Kernel& kernel, std::string_view dir) {
  const std::string prefix = std::string(below_sys(dir)) + "/";
  std::vector<std::string> names;
  for (const auto& [path, value] : sysfs_attributes(kernel)) {
    if (path.compare(0, prefix.size(), prefix) != 0) continue;
    std::string name = path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size());
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace kernel
