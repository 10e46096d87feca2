// SPDX-License-Identifier: Apache-2.0
// Address handles of mlx5: the address vector is computed once and copied into each UD WQE (S-WQE-9, S-OBJ-61). On
// RoCE the kernel resolves the destination MAC (CREATE_AH). The UDP source port of RoCEv2 folds the flow label into 14
// bits; a zero label, for which the real driver draws a random port, uses a hash of the destination GID.
#include "verbs_frontend/mlx5/ah.h"

#include <rdma/mlx5-abi.h>

#include <cerrno>
#include <memory>

#include "verbs_frontend/libibverbs/command.h"
#include "verbs_frontend/mlx5/mlx5.h"

namespace verbs::mlx5 {
namespace {

/// Device code of a verbs static rate; 0 = the port's rate.
std::uint8_t rate_code(unsigned rate) {
  static constexpr std::array<std::uint8_t, 19> kCodes{0,  0,  7,  8, 9,  10, 11, 12, 13, 14,
                                                       15, 11, 13, 0, 15, 9,  15, 0,  0};
  // In the order of enum ibv_rate: 2.5→7, 10→8, 30→9, 5→10, 20→11, 40→12, 60→13, 80→14, 120→15, 14→11, 56→13, 112→15, 25→9, 100→15.
  switch (rate) {
    case IBV_RATE_14_GBPS:
      return 11;
    case IBV_RATE_56_GBPS:
      return 13;
    case IBV_RATE_112_GBPS:
      return 15;
    case IBV_RATE_25_GBPS:
      return 9;
    case IBV_RATE_100_GBPS:
      return 15;
    case IBV_RATE_28_GBPS:
      return 9;
    case IBV_RATE_50_GBPS:
      return 13;
    default:
      return rate <= IBV_RATE_120_GBPS ? kCodes[rate] : 0;
  }
}

std::uint16_t udp_source_port(const ibv_global_route& grh) {
  std::uint32_t label = grh.flow_label & 0xfffff;
  if (label == 0)
    for (const std::uint8_t b : grh.dgid.raw) label = (label * 31 + b) & 0xfffff;
  return static_cast<std::uint16_t>(((label & 0x3fff) ^ (label >> 14)) | 0xc000);
}

/// CREATE_AH: the kernel's object, which holds the PD, and the destination MAC.
int create_in_kernel(ibv_pd* pd, const ibv_ah_attr& attr, Ah& ah) {
  Command c(IB_USER_VERBS_CMD_CREATE_AH);
  auto& req = c.add<ib_uverbs_create_ah>();
  const auto& resp = c.expect<ib_uverbs_create_ah_resp>();
  const auto& driver = c.expect<mlx5_ib_create_ah_resp>();
  req.response = c.response_address();
  req.pd_handle = pd->handle;
  req.attr.dlid = attr.dlid;
  req.attr.sl = attr.sl;
  req.attr.src_path_bits = attr.src_path_bits;
  req.attr.static_rate = attr.static_rate;
  req.attr.is_global = attr.is_global;
  req.attr.port_num = attr.port_num;
  std::memcpy(req.attr.grh.dgid, attr.grh.dgid.raw, 16);
  req.attr.grh.flow_label = attr.grh.flow_label;
  req.attr.grh.sgid_index = attr.grh.sgid_index;
  req.attr.grh.hop_limit = attr.grh.hop_limit;
  req.attr.grh.traffic_class = attr.grh.traffic_class;
  if (const int e = c.issue(*context_of(pd->context).syscalls, pd->context->cmd_fd)) return e;
  ah.ah.handle = resp.ah_handle;
  ah.in_kernel = true;
  std::memcpy(ah.av.data() + 20, driver.dmac, sizeof driver.dmac);
  return 0;
}

void put16(std::byte* at, std::uint16_t v) {
  v = be16(v);
  std::memcpy(at, &v, 2);
}

int fill_global(ibv_pd* pd, const ibv_ah_attr& attr, bool ethernet, Ah& ah) {
  std::byte* av = ah.av.data();
  av[27] = std::byte{attr.grh.hop_limit};
  av[26] = std::byte{attr.grh.traffic_class};
  std::uint32_t word = std::uint32_t{attr.grh.sgid_index} << 20 | (attr.grh.flow_label & 0xfffff);
  if (!ethernet) word |= 1U << 30;
  word = be32(word);
  std::memcpy(av + 28, &word, 4);
  std::memcpy(av + 32, attr.grh.dgid.raw, 16);
  if (!ethernet) return 0;
  ibv_gid_entry entry{};
  if (const int e = _ibv_query_gid_ex(pd->context, attr.port_num, attr.grh.sgid_index, &entry, 0, sizeof entry))
    return e == ENODATA ? EINVAL : e;
  put16(av + 14, entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? udp_source_port(attr.grh) : std::uint16_t{0});
  return create_in_kernel(pd, attr, ah);
}

}  // namespace

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  Mlx5Context& c = mlx5_of(pd->context);
  if (attr->port_num < 1 || attr->port_num > c.num_ports) return fail(EINVAL);
  ibv_port_attr port{};
  if (const int e = cmd_query_port(pd->context, attr->port_num, port)) return fail(e);
  const bool ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  if (ethernet && !attr->is_global) return fail(EINVAL);
  auto ah = std::make_unique<Ah>();
  ah->ah.context = pd->context;
  ah->ah.pd = pd;
  std::byte* av = ah->av.data();
  const std::uint8_t rate = static_cast<std::uint8_t>(rate_code(attr->static_rate) << 4);
  if (ethernet) {
    av[12] = static_cast<std::byte>(rate | (attr->sl & 7) << 1);
  } else {
    av[12] = static_cast<std::byte>(rate | (attr->sl & 15));
    av[13] = static_cast<std::byte>(attr->src_path_bits & 0x7f);
    put16(av + 14, attr->dlid);
  }
  if (attr->is_global)
    if (const int e = fill_global(pd, *attr, ethernet, *ah)) return fail(e);
  return &ah.release()->ah;
}

int destroy_ah(ibv_ah* ah) {
  if (ah_of(ah).in_kernel) {
    Command c(IB_USER_VERBS_CMD_DESTROY_AH);
    c.add<ib_uverbs_destroy_ah>().ah_handle = ah->handle;
    if (const int e = c.issue(*context_of(ah->context).syscalls, ah->context->cmd_fd)) return e;
  }
  delete &ah_of(ah);
  return 0;
}

void put_datagram(Machine& m, std::byte* seg, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
  std::array<std::byte, 48> d = ah_of(ah).av;
  const std::uint32_t key = be32(qkey), destination = be32(qpn | 0x80000000U);
  std::memcpy(d.data(), &key, 4);
  std::memcpy(d.data() + 8, &destination, 4);
  m.store_bytes(seg, d.data(), d.size());
}

}  // namespace verbs::mlx5
