// SPDX-License-Identifier: Apache-2.0
// QP transition tables for RC, UC and UD; those of XRC follow from RC. Other types are refused where QPs are created.
// Source: InfiniBand Architecture, QP state diagram and modify-QP attribute tables, as ib_core and mlx5_ib restate them.
#include "kernel/core/qp_state.h"

#include "hca/prm.h"

namespace kernel {
namespace {

namespace prm = hca::prm;

constexpr std::uint32_t kPkeyPort = IBV_QP_PKEY_INDEX | IBV_QP_PORT;
constexpr std::uint32_t kRtrCommon = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr std::uint32_t kRtsOptional = IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE;

struct Row {
  ibv_qp_state from, to;
  AttributeMasks rc, uc, ud;
};
constexpr Row kRows[] = {
    {IBV_QPS_RESET,
     IBV_QPS_INIT,
     {kPkeyPort | IBV_QP_ACCESS_FLAGS, 0},
     {kPkeyPort | IBV_QP_ACCESS_FLAGS, 0},
     {kPkeyPort | IBV_QP_QKEY, 0}},
    {IBV_QPS_INIT,
     IBV_QPS_INIT,
     {0, kPkeyPort | IBV_QP_ACCESS_FLAGS},
     {0, kPkeyPort | IBV_QP_ACCESS_FLAGS},
     {0, kPkeyPort | IBV_QP_QKEY}},
    {IBV_QPS_INIT,
     IBV_QPS_RTR,
     {kRtrCommon | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
      IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
     {kRtrCommon, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
     {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
    {IBV_QPS_RTR,
     IBV_QPS_RTS,
     {IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
      kRtsOptional | IBV_QP_MIN_RNR_TIMER},
     {IBV_QP_SQ_PSN, kRtsOptional},
     {IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
    {IBV_QPS_RTS,
     IBV_QPS_RTS,
     {0, kRtsOptional | IBV_QP_MIN_RNR_TIMER},
     {0, kRtsOptional},
     {0, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
    {IBV_QPS_RTS,
     IBV_QPS_SQD,
     {0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
     {0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
     {0, IBV_QP_EN_SQD_ASYNC_NOTIFY}},
    {IBV_QPS_SQD,
     IBV_QPS_RTS,
     {0, kRtsOptional | IBV_QP_MIN_RNR_TIMER},
     {0, kRtsOptional},
     {0, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
    {IBV_QPS_SQD,
     IBV_QPS_SQD,
     {0, IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
             IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
     {0, IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE},
     {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
    {IBV_QPS_SQE,
     IBV_QPS_RTS,
     {0, 0},
     {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
     {0, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
};

/// Optional attributes that the device command of a transition takes, per service.
struct OptRow {
  ibv_qp_state from, to;
  std::uint32_t rc, uc, ud;
};
constexpr std::uint32_t kOptAccess = prm::kOptRre | prm::kOptRae | prm::kOptRwe;
constexpr OptRow kOptRows[] = {
    {IBV_QPS_INIT, IBV_QPS_INIT, kOptAccess | prm::kOptPkeyIndex | prm::kOptPrimaryPort,
     prm::kOptRwe | prm::kOptPkeyIndex | prm::kOptPrimaryPort,
     prm::kOptPkeyIndex | prm::kOptQkey | prm::kOptPrimaryPort},
    {IBV_QPS_INIT, IBV_QPS_RTR, prm::kOptAltPath | kOptAccess | prm::kOptPkeyIndex,
     prm::kOptAltPath | prm::kOptRwe | prm::kOptPkeyIndex, prm::kOptPkeyIndex | prm::kOptQkey},
    {IBV_QPS_RTR, IBV_QPS_RTS, prm::kOptAltPath | kOptAccess | prm::kOptPmState | prm::kOptRnrTimeout,
     prm::kOptAltPath | prm::kOptRwe | prm::kOptPmState, prm::kOptQkey},
    {IBV_QPS_RTS, IBV_QPS_RTS, prm::kOptAltPath | kOptAccess | prm::kOptPmState | prm::kOptRnrTimeout,
     prm::kOptAltPath | prm::kOptRwe | prm::kOptPmState, prm::kOptQkey},
    {IBV_QPS_SQD, IBV_QPS_SQD,
     kOptAccess | prm::kOptPrimaryPath | prm::kOptPrimaryPort | prm::kOptAckTimeout | prm::kOptRetryCount |
         prm::kOptRnrRetry | prm::kOptSraMax | prm::kOptRraMax | prm::kOptPkeyIndex | prm::kOptRnrTimeout |
         prm::kOptPmState,
     prm::kOptRwe | prm::kOptPrimaryPath | prm::kOptPrimaryPort | prm::kOptPkeyIndex | prm::kOptPmState,
     prm::kOptPkeyIndex | prm::kOptQkey},
    {IBV_QPS_SQE, IBV_QPS_RTS, kOptAccess | prm::kOptRnrTimeout, prm::kOptRwe, prm::kOptQkey},
    {IBV_QPS_SQD, IBV_QPS_RTS, prm::kOptAltPath | kOptAccess | prm::kOptPmState | prm::kOptRnrTimeout,
     prm::kOptAltPath | prm::kOptRwe | prm::kOptPmState, prm::kOptQkey},
};

template <class R>
const auto& of_type(const R& row, ibv_qp_type type) {
  return type == IBV_QPT_UC ? row.uc : type == IBV_QPT_UD ? row.ud : row.rc;
}

std::uint32_t opt_bits(std::uint32_t mask) {
  std::uint32_t opt = 0;
  const auto map = [&](std::uint32_t attribute, std::uint32_t bits) {
    if ((mask & attribute) != 0) opt |= bits;
  };
  map(IBV_QP_ACCESS_FLAGS, kOptAccess);
  map(IBV_QP_PKEY_INDEX, prm::kOptPkeyIndex);
  map(IBV_QP_PORT, prm::kOptPrimaryPort);
  map(IBV_QP_QKEY, prm::kOptQkey);
  map(IBV_QP_AV, prm::kOptPrimaryPath);
  map(IBV_QP_TIMEOUT, prm::kOptAckTimeout);
  map(IBV_QP_RETRY_CNT, prm::kOptRetryCount);
  map(IBV_QP_RNR_RETRY, prm::kOptRnrRetry);
  map(IBV_QP_RNR_RETRY, prm::kOptRnrRetry);
  map(IBV_QP_MAX_QP_RD_ATOMIC, prm::kOptSraMax);
  map(IBV_QP_ALT_PATH, prm::kOptAltPath);
  map(IBV_QP_MIN_RNR_TIMER, prm::kOptRnrTimeout);
  // max_dest_rd_atomic decides together with the access flags whether READ and ATOMIC are served (S-QP-29).
  map(IBV_QP_MAX_DEST_RD_ATOMIC, prm::kOptRraMax | kOptAccess);
  map(IBV_QP_PATH_MIG_STATE, prm::kOptPmState);
  return opt;
}

}  // namespace

namespace {
// XRC splits the attributes of RC: the sender has no responder, the target no requester (S-QP-13).
constexpr std::uint32_t kOfResponder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr std::uint32_t kOfRequester = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
AttributeMasks without(AttributeMasks m, std::uint32_t bits) { return {m.required & ~bits, m.optional & ~bits}; }
}  // namespace

std::optional<AttributeMasks> transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_RESET) return AttributeMasks{};
  if (to == IBV_QPS_ERR) return from == IBV_QPS_RESET ? std::nullopt : std::optional(AttributeMasks{});
  for (const Row& r : kRows)
    if (r.from == from && r.to == to) {
      if (type == IBV_QPT_XRC_SEND) return without(r.rc, kOfResponder);
      if (type == IBV_QPT_XRC_RECV) return without(r.rc, kOfRequester);
      return of_type(r, type);
    }
  return std::nullopt;
}

bool modify_allowed(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, std::uint32_t mask) {
  if ((mask & IBV_QP_CUR_STATE) != 0 && from != IBV_QPS_RTR && from != IBV_QPS_RTS && from != IBV_QPS_SQD &&
      from != IBV_QPS_SQE)
    return false;
  const auto m = transition(type, from, to);
  if (!m) return false;
  return (mask & m->required) == m->required && (mask & ~(m->required | m->optional | IBV_QP_STATE)) == 0;
}

std::uint32_t device_opt_mask(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, std::uint32_t mask) {
  for (const OptRow& r : kOptRows)
    if (r.from == from && r.to == to) return opt_bits(mask) & of_type(r, type);
  return 0;
}

std::optional<std::uint16_t> device_command(ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_RESET) return prm::kQp2Rst;
  if (to == IBV_QPS_ERR) return prm::kQp2Err;
  if (from == IBV_QPS_RESET && to == IBV_QPS_INIT) return prm::kRst2Init;
  if (from == IBV_QPS_INIT && to == IBV_QPS_INIT) return prm::kInit2Init;
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) return prm::kInit2Rtr;
  if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) return prm::kRtr2Rts;
  if (from == IBV_QPS_RTS && to == IBV_QPS_RTS) return prm::kRts2Rts;
  if (from == IBV_QPS_RTS && to == IBV_QPS_SQD) return prm::kRts2Sqd;
  if (from == IBV_QPS_SQD && to == IBV_QPS_SQD) return prm::kSqd2Sqd;
  if (from == IBV_QPS_SQE && to == IBV_QPS_RTS) return prm::kSqerr2Rts;
  if (from == IBV_QPS_SQD && to == IBV_QPS_RTS) return prm::kSqd2Rts;
  return std::nullopt;
}

ibv_qp_state state_of_device(std::uint32_t code) {
  switch (code) {
    case prm::kQpRst:
      return IBV_QPS_RESET;
    case prm::kQpInit:
      return IBV_QPS_INIT;
    case prm::kQpRtr:
      return IBV_QPS_RTR;
    case prm::kQpRts:
      return IBV_QPS_RTS;
    case prm::kQpSqer:
      return IBV_QPS_SQE;
    case prm::kQpSqd:
    case prm::kQpSqDraining:
      return IBV_QPS_SQD;
    case prm::kQpErr:
      return IBV_QPS_ERR;
    default:
      return IBV_QPS_UNKNOWN;
  }
}

std::uint32_t device_service(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_UC:
      return prm::kStUc;
    case IBV_QPT_UD:
      return prm::kStUd;
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
      return prm::kStXrc;
    default:
      return prm::kStRc;
  }
}

}  // namespace kernel
