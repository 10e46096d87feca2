// SPDX-License-Identifier: Apache-2.0
// Commands that create and destroy PDs, CQs and AHs. Each creation holds its parents, takes what it needs step by
// step and gives everything back when a step fails.
// Source: ib_uverbs uverbs_cmd.c; mlx5_ib cq.c; rules S-OBJ-20 … S-OBJ-36, S-OBJ-61.
#include <bit>
#include <cerrno>

#include "kernel/mlx5/mlx5_commands.h"
#include "kernel/undo.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

// PD ----------------------------------------------------------------------------------------------------------------------

int UverbsFile::alloc_pd(Io& io) {
  auto pd = std::make_unique<Pd>();
  if (const int error = kernel::alloc_pd(kernel_.commands(), pd->pdn); error != 0) return error;
  const mlx5_ib_alloc_pd_resp driver{pd->pdn};
  io.respond(ib_uverbs_alloc_pd_resp{add(std::move(pd))});
  io.driver_respond(driver);
  return 0;
}

int UverbsFile::dealloc_pd(Io& io) { return destroy(ObjectType::pd, io.request<ib_uverbs_dealloc_pd>().pd_handle); }

// CQ ----------------------------------------------------------------------------------------------------------------------

int UverbsFile::create_cq_common(const ib_uverbs_ex_create_cq& cmd, Io& io, ib_uverbs_create_cq_resp& resp) {
  const DeviceCaps& caps = kernel_.caps();
  if (cmd.comp_vector >= kernel_.comp_vectors()) return -EINVAL;
  auto cq = std::make_unique<Cq>();
  if (cmd.comp_channel >= 0) {
    cq->channel = descriptors_.channel(cmd.comp_channel);
    if (cq->channel == nullptr) return -EINVAL;
  }
  const std::uint32_t most = 1U << caps.log_max_cq_sz;
  if (cmd.cqe == 0 || cmd.cqe >= most) return -EINVAL;
  const std::uint32_t entries = std::bit_ceil(cmd.cqe + 1);
  if (entries > most) return -EINVAL;
  if ((cmd.flags &
       ~static_cast<std::uint32_t>(IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN | IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)) != 0)
    return -EOPNOTSUPP;

  if (io.driver_in.size() < offsetof(mlx5_ib_create_cq, cqe_comp_en)) return -EINVAL;
  const auto user = io.driver_request<mlx5_ib_create_cq>();
  if ((user.flags & ~static_cast<std::uint32_t>(MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD)) != 0 || user.reserved0 != 0 ||
      user.reserved1 != 0)
    return -EINVAL;
  if ((user.cqe_size != 64 && user.cqe_size != 128) || user.buf_addr % 64 != 0) return -EINVAL;
  if (user.cqe_comp_en != 0) return -EOPNOTSUPP;

  CqParams params;
  if (const int error = kernel_.acquire(user_, {user.buf_addr}, std::uint64_t{entries} * user.cqe_size, cq->buffer);
      error != 0)
    return error;
  Undo undo_buffer([&] { kernel_.release(user_, cq->buffer); });
  if (const int error = acquire_dbr(user.db_addr, cq->dbr, params.dbr); error != 0) return error;
  Undo undo_dbr([&] { release_dbr(cq->dbr); });
  params.log_size = static_cast<unsigned>(std::bit_width(entries) - 1);
  params.cqe_size = user.cqe_size;
  params.page_offset = static_cast<std::uint32_t>(memory::Va{user.buf_addr}.offset() / 64);
  params.uar = uars_.front();
  params.eqn = kernel_.comp_eq(cmd.comp_vector).eqn();
  params.period_from_cqe = kernel_.config().driver.cq_period_mode == CqPeriodMode::cqe;
  params.solicited_breaks = kernel_.config().driver.solicited_breaks_moderation;
  params.ignore_overrun = (cmd.flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN) != 0;
  if (const int error = kernel::create_cq(kernel_.commands(), params, cq->buffer.mapping, cq->cqn); error != 0)
    return error == -EAGAIN ? -ENOMEM : error;
  undo_dbr.dismiss();
  undo_buffer.dismiss();
  cq->comp_vector = cmd.comp_vector;
  cq->entries = entries;
  cq->cqe_size = user.cqe_size;
  cq->user_handle = cmd.user_handle;
  cq->async = async_;
  kernel_.add_cq(*cq);
  io.driver_respond(mlx5_ib_create_cq_resp{cq->cqn, 0});
  resp.cqe = entries - 1;
  resp.cq_handle = add(std::move(cq));
  return 0;
}

int UverbsFile::create_cq(Io& io) {
  const auto legacy = io.request<ib_uverbs_create_cq>();
  ib_uverbs_ex_create_cq cmd{};
  cmd.user_handle = legacy.user_handle;
  cmd.cqe = legacy.cqe;
  cmd.comp_vector = legacy.comp_vector;
  cmd.comp_channel = legacy.comp_channel;
  ib_uverbs_create_cq_resp resp{};
  const int error = create_cq_common(cmd, io, resp);
  if (error == 0) io.respond(resp);
  return error;
}

int UverbsFile::create_cq_ex(Io& io) {
  const auto cmd = io.request<ib_uverbs_ex_create_cq>();
  if (cmd.comp_mask != 0 || cmd.reserved != 0) return -EINVAL;
  ib_uverbs_ex_create_cq_resp resp{};
  resp.response_length = sizeof resp;
  const int error = create_cq_common(cmd, io, resp.base);
  if (error == 0) io.respond(resp);
  return error;
}

int UverbsFile::destroy_cq(Io& io) {
  const auto cmd = io.request<ib_uverbs_destroy_cq>();
  ib_uverbs_destroy_cq_resp resp{};
  const auto report = [](Object& o, void* arg) {
    auto& r = *static_cast<ib_uverbs_destroy_cq_resp*>(arg);
    r.comp_events_reported = static_cast<Cq&>(o).comp_events_reported;
    r.async_events_reported = o.async_events_reported;
  };
  const int error = destroy(ObjectType::cq, cmd.cq_handle, report, &resp);
  if (error == 0) io.respond(resp);
  return error;
}

// AH ----------------------------------------------------------------------------------------------------------------------

int UverbsFile::create_ah(Io& io) {
  const auto cmd = io.request<ib_uverbs_create_ah>();
  if (cmd.attr.port_num == 0 || cmd.attr.port_num > kernel_.caps().num_ports) return -EINVAL;
  Use<Pd> pd;
  if (const int error = parent(ObjectType::pd, cmd.pd_handle, pd); error != 0) return error;
  if (cmd.attr.is_global == 0 || !kernel_.gids().usable(cmd.attr.grh.sgid_index)) return -EINVAL;
  Gid gid;
  std::memcpy(gid.data(), cmd.attr.grh.dgid, gid.size());
  int error = 0;
  auto ah = std::make_unique<Ah>();
  ah->dmac = kernel_.resolve(gid, error);
  if (error != 0) return error;
  ah->pd = pd.get();
  ah->user_handle = cmd.user_handle;
  ++pd->usecnt;
  mlx5_ib_create_ah_resp driver{};
  driver.response_length = sizeof driver;
  for (unsigned i = 0; i < ETH_ALEN; ++i)
    driver.dmac[i] = static_cast<std::uint8_t>(ah->dmac >> (8 * (ETH_ALEN - 1 - i)));
  io.respond(ib_uverbs_create_ah_resp{add(std::move(ah))});
  io.driver_respond(driver);
  return 0;
}

int UverbsFile::destroy_ah(Io& io) { return destroy(ObjectType::ah, io.request<ib_uverbs_destroy_ah>().ah_handle); }

}  // namespace kernel
