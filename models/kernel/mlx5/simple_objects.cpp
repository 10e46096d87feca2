// SPDX-License-Identifier: Apache-2.0
// The driver's objects that are little more than a number: PDs, address handles, multicast memberships, XRC domains.
// Source: mlx5_ib main.c, ah.c, qp.c.
#include <linux/if_ether.h>
#include <rdma/mlx5-abi.h>

#include "kernel/mlx5/mlx5_ib.h"

namespace kernel::mlx5_ib {

int alloc_pd(Pd& pd, const Udata* udata) {
  if (const int error = kernel::alloc_pd(pd.device->kernel.commands(), pd.pdn); error != 0) return error;
  if (udata != nullptr) udata->respond(mlx5_ib_alloc_pd_resp{pd.pdn});
  return 0;
}

int dealloc_pd(Pd& pd) { return kernel::dealloc_pd(pd.device->kernel.commands(), pd.pdn); }

int create_ah(Ah& ah, const ibv_ah_attr& /*attr*/, const Udata* udata) {
  if (udata == nullptr) return 0;
  mlx5_ib_create_ah_resp resp{};
  resp.response_length = sizeof resp;
  for (unsigned i = 0; i < ETH_ALEN; ++i) resp.dmac[i] = static_cast<std::uint8_t>(ah.dmac >> (8 * (ETH_ALEN - 1 - i)));
  udata->respond(resp);
  return 0;
}

int destroy_ah(Ah& /*ah*/) { return 0; }

int attach_mcast(Qp& qp, const Gid& group) { return attach_to_group(qp.device->kernel.commands(), qp.qpn, group); }

int detach_mcast(Qp& qp, const Gid& group) { return detach_from_group(qp.device->kernel.commands(), qp.qpn, group); }

int alloc_xrcd(XrcDomain& domain, const Udata* /*udata*/) {
  return kernel::alloc_xrcd(domain.device->kernel.commands(), domain.xrcdn);
}

int dealloc_xrcd(XrcDomain& domain) { return kernel::dealloc_xrcd(domain.device->kernel.commands(), domain.xrcdn); }

}  // namespace kernel::mlx5_ib
