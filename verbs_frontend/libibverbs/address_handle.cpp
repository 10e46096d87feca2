// SPDX-License-Identifier: Apache-2.0
// Address handles that answer a received datagram: the network header in front of it, with its addresses exchanged
// (S-UD-6), and membership in multicast groups (S-UD-8).
#include <array>
#include <cerrno>
#include <cstring>

#include "verbs_frontend/libibverbs/command.h"
#include "verbs_frontend/libibverbs/provider.h"

namespace verbs {
namespace {

constexpr std::size_t kHeaderArea = 40, kIpv4Offset = 20;
constexpr std::uint8_t kHopLimit = 0xff, kUdp = 17, kGrhNextHeader = 0x1b;
using Header = std::array<std::uint8_t, kHeaderArea>;

Header load_header(const ibv_grh* grh) {
  Header h{};
  cpu::Thread& t = cpu::current();
  if (t.space().owns(grh)) t.load(grh, h.data(), h.size());
  else std::memcpy(h.data(), grh, h.size());
  return h;
}

/// The area holds an IPv4 header in its second half if that is well formed: its checksum tells it from IPv6 payload bytes.
bool holds_ipv4(const Header& h) {
  if (h[kIpv4Offset] != 0x45) return false;
  std::uint32_t sum = 0;
  for (std::size_t i = kIpv4Offset; i < kHeaderArea; i += 2) sum += std::uint32_t{h[i]} << 8 | h[i + 1];
  sum = (sum & 0xffff) + (sum >> 16);
  return ((sum & 0xffff) + (sum >> 16)) == 0xffff;
}

ibv_gid mapped(const std::uint8_t* ipv4) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(gid.raw + 12, ipv4, 4);
  return gid;
}

int find_gid(ibv_context* context, std::uint32_t port, const ibv_gid& gid, std::uint32_t type) {
  ibv_gid_entry entry{};
  for (std::uint32_t i = 0;; ++i) {
    const int e = _ibv_query_gid_ex(context, port, i, &entry, 0, sizeof entry);
    if (e == ENODATA) continue;  // an empty slot
    if (e != 0) return -1;       // behind the end of the table
    if (entry.gid_type == type && std::memcmp(&entry.gid, &gid, sizeof gid) == 0) return static_cast<int>(i);
  }
}

int set_route(ibv_context* context, std::uint32_t port, const ibv_gid& local, std::uint32_t type, const ibv_gid& remote,
              ibv_ah_attr& a) {
  const int index = find_gid(context, port, local, type);
  if (index < 0) return -1;
  a.is_global = 1;
  a.grh.dgid = remote;
  a.grh.sgid_index = static_cast<std::uint8_t>(index);
  a.grh.hop_limit = kHopLimit;
  return 0;
}

int route_by_ipv4(ibv_context* context, std::uint32_t port, const Header& h, ibv_ah_attr& a) {
  a.grh.traffic_class = h[kIpv4Offset + 1];
  return set_route(context, port, mapped(&h[kIpv4Offset + 16]), IBV_GID_TYPE_ROCE_V2, mapped(&h[kIpv4Offset + 12]), a);
}

int route_by_ipv6(ibv_context* context, std::uint32_t port, const Header& h, ibv_ah_attr& a) {
  if (h[0] >> 4 != 6) return -1;
  if (h[6] != kUdp && h[6] != kGrhNextHeader) {
    errno = EPROTONOSUPPORT;
    return -1;
  }
  ibv_gid local, remote;
  std::memcpy(remote.raw, &h[8], 16);
  std::memcpy(local.raw, &h[24], 16);
  a.grh.traffic_class = static_cast<std::uint8_t>(h[0] << 4 | h[1] >> 4);
  a.grh.flow_label = (h[1] & 0xfU) << 16 | std::uint32_t{h[2]} << 8 | h[3];
  return set_route(context, port, local, h[6] == kUdp ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1, remote, a);
}

template <class Request>
int on_group(std::uint32_t number, ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  Command c(number);
  auto& req = c.add<Request>();
  std::memcpy(req.gid, gid->raw, sizeof req.gid);
  req.qp_handle = qp->handle;
  req.mlid = lid;
  return c.issue(*context_of(qp->context).syscalls, qp->context->cmd_fd);
}

}  // namespace

int cmd_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  return on_group<ib_uverbs_attach_mcast>(IB_USER_VERBS_CMD_ATTACH_MCAST, qp, gid, lid);
}
int cmd_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  return on_group<ib_uverbs_detach_mcast>(IB_USER_VERBS_CMD_DETACH_MCAST, qp, gid, lid);
}

}  // namespace verbs

extern "C" {

int ibv_init_ah_from_wc(struct ibv_context* context, uint8_t port_num, struct ibv_wc* wc, struct ibv_grh* grh,
                        struct ibv_ah_attr* ah_attr) {
  *ah_attr = {};
  ah_attr->dlid = wc->slid;
  ah_attr->sl = wc->sl;
  ah_attr->src_path_bits = wc->dlid_path_bits;
  ah_attr->port_num = port_num;
  if ((wc->wc_flags & IBV_WC_GRH) == 0) return 0;
  const auto header = verbs::load_header(grh);
  return verbs::holds_ipv4(header) ? verbs::route_by_ipv4(context, port_num, header, *ah_attr)
                                   : verbs::route_by_ipv6(context, port_num, header, *ah_attr);
}

struct ibv_ah* ibv_create_ah_from_wc(struct ibv_pd* pd, struct ibv_wc* wc, struct ibv_grh* grh, uint8_t port_num) {
  ibv_ah_attr attr{};
  return ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0 ? nullptr : ibv_create_ah(pd, &attr);
}

}  // extern "C"
