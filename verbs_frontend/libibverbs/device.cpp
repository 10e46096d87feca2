// SPDX-License-Identifier: Apache-2.0
// Queries of an open device: attributes and port by kernel command, GID and P_Key tables from sysfs text
// (S-OBJ-10, S-OBJ-11). GID types: "IB/RoCE v1" and "RoCE v2" of gid_attrs/types.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "verbs_frontend/libibverbs/provider.h"
#include "verbs_frontend/libibverbs/sysfs.h"

namespace verbs {
namespace {

std::string port_file(ibv_context* c, unsigned port, std::string_view file) {
  return std::string(c->device->ibdev_path) + "/ports/" + std::to_string(port) + "/" + std::string(file);
}

/// 0 or a positive errno.
int read_gid(ibv_context* c, unsigned port, unsigned index, ibv_gid& gid) {
  const auto text = sysfs_line(*context_of(c).syscalls, port_file(c, port, "gids/" + std::to_string(index)));
  std::array<std::uint16_t, 8> groups{};
  if (!text || !parse_groups(*text, groups)) return EINVAL;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    gid.raw[2 * i] = static_cast<std::uint8_t>(groups[i] >> 8);
    gid.raw[2 * i + 1] = static_cast<std::uint8_t>(groups[i]);
  }
  return 0;
}

bool empty(const ibv_gid& gid) {
  return std::ranges::all_of(gid.raw, [](std::uint8_t b) { return b == 0; });
}

int read_gid_entry(ibv_context* c, unsigned port, unsigned index, ibv_gid_entry& e) {
  if (const int error = read_gid(c, port, index, e.gid)) return error;
  if (empty(e.gid)) return ENODATA;
  ibv_port_attr attr{};
  if (const int error = ops_of(c).query_port(c, static_cast<std::uint8_t>(port), &attr)) return error;
  const auto type = sysfs_line(*context_of(c).syscalls, port_file(c, port, "gid_attrs/types/" + std::to_string(index)));
  e.gid_index = index;
  e.port_num = port;
  e.ndev_ifindex = 0;
  if (attr.link_layer != IBV_LINK_LAYER_ETHERNET) e.gid_type = IBV_GID_TYPE_IB;
  else e.gid_type = type && *type == "RoCE v2" ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
  return 0;
}

int error_return(int error) {
  errno = error;
  return -1;
}

}  // namespace
}  // namespace verbs

using verbs::ops_of;

extern "C" {

int ibv_query_device(struct ibv_context* context, struct ibv_device_attr* device_attr) {
  return ops_of(context).query_device(context, device_attr);
}

// The exported function of the old ABI: programs compiled against the header reach verbs_context.query_port instead.
int ibv_query_port(struct ibv_context* context, uint8_t port_num, struct _compat_ibv_port_attr* port_attr) {
  ibv_port_attr attr{};
  if (const int e = ops_of(context).query_port(context, port_num, &attr)) return e;
  std::memcpy(port_attr, &attr, offsetof(ibv_port_attr, port_cap_flags2));
  return 0;
}

int ibv_query_gid(struct ibv_context* context, uint8_t port_num, int index, union ibv_gid* gid) {
  const int e = index < 0 ? EINVAL : verbs::read_gid(context, port_num, static_cast<unsigned>(index), *gid);
  return e == 0 ? 0 : verbs::error_return(e);
}

int _ibv_query_gid_ex(struct ibv_context* context, uint32_t port_num, uint32_t gid_index, struct ibv_gid_entry* entry,
                      uint32_t flags, size_t entry_size) {
  if (flags != 0 || entry_size < sizeof *entry) return EINVAL;
  std::memset(entry, 0, entry_size);
  return verbs::read_gid_entry(context, port_num, gid_index, *entry);
}

ssize_t _ibv_query_gid_table(struct ibv_context* context, struct ibv_gid_entry* entries, size_t max_entries,
                             uint32_t flags, size_t entry_size) {
  if (flags != 0 || entry_size < sizeof *entries) return -EINVAL;
  ibv_device_attr device{};
  if (const int e = ops_of(context).query_device(context, &device)) return -e;
  std::size_t n = 0;
  for (unsigned port = 1; port <= device.phys_port_cnt; ++port) {
    ibv_port_attr attr{};
    if (const int e = ops_of(context).query_port(context, static_cast<std::uint8_t>(port), &attr)) return -e;
    for (unsigned i = 0; i < static_cast<unsigned>(attr.gid_tbl_len) && n < max_entries; ++i) {
      auto* e = reinterpret_cast<ibv_gid_entry*>(reinterpret_cast<std::byte*>(entries) + n * entry_size);
      std::memset(e, 0, entry_size);
      if (verbs::read_gid_entry(context, port, i, *e) == 0) ++n;
    }
  }
  return static_cast<ssize_t>(n);
}

int ibv_query_pkey(struct ibv_context* context, uint8_t port_num, int index, __be16* pkey) {
  const auto text = index < 0
                        ? std::nullopt
                        : verbs::sysfs_line(*verbs::context_of(context).syscalls,
                                            verbs::port_file(context, port_num, "pkeys/" + std::to_string(index)));
  unsigned value = 0;
  if (!text || std::sscanf(text->c_str(), "%x", &value) != 1) return verbs::error_return(EINVAL);
  *pkey = __builtin_bswap16(static_cast<std::uint16_t>(value));
  return 0;
}

int ibv_get_pkey_index(struct ibv_context* context, uint8_t port_num, __be16 pkey) {
  __be16 entry = 0;
  for (int i = 0; ibv_query_pkey(context, port_num, i, &entry) == 0; ++i)
    if (entry == pkey) return i;
  return -1;
}

int ibv_fork_init(void) { return 0; }
enum ibv_fork_status ibv_is_fork_initialized(void) { return IBV_FORK_UNNEEDED; }

}  // extern "C"
