// SPDX-License-Identifier: Apache-2.0
// Names of the verbs API's enumerations, without their IBV_ prefixes: scenarios, results and reports use these words.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "sim/config.h"

namespace sys {

/// What a call returns: 0 or an errno value. ETIMEDOUT also stands for a wait of a program that ran out of time.
enum class Errno : int {
  success = 0,
  eperm = EPERM,
  enoent = ENOENT,
  eintr = EINTR,
  eio = EIO,
  enxio = ENXIO,
  ebadf = EBADF,
  eagain = EAGAIN,
  enomem = ENOMEM,
  eacces = EACCES,
  efault = EFAULT,
  ebusy = EBUSY,
  enodev = ENODEV,
  einval = EINVAL,
  emfile = EMFILE,
  enospc = ENOSPC,
  erange = ERANGE,
  enosys = ENOSYS,
  eexist = EEXIST,
  eaddrnotavail = EADDRNOTAVAIL,
  enodata = ENODATA,
  eproto = EPROTO,
  eoverflow = EOVERFLOW,
  eopnotsupp = EOPNOTSUPP,
  etimedout = ETIMEDOUT,
};

}  // namespace sys

template <>
struct sim::EnumNames<sys::Errno> {
  static constexpr std::array<std::pair<sys::Errno, std::string_view>, 25> values{
      {{sys::Errno::success, "SUCCESS"},
       {sys::Errno::eperm, "EPERM"},
       {sys::Errno::enoent, "ENOENT"},
       {sys::Errno::eintr, "EINTR"},
       {sys::Errno::eio, "EIO"},
       {sys::Errno::enxio, "ENXIO"},
       {sys::Errno::ebadf, "EBADF"},
       {sys::Errno::eagain, "EAGAIN"},
       {sys::Errno::enomem, "ENOMEM"},
       {sys::Errno::eacces, "EACCES"},
       {sys::Errno::efault, "EFAULT"},
       {sys::Errno::ebusy, "EBUSY"},
       {sys::Errno::enodev, "ENODEV"},
       {sys::Errno::einval, "EINVAL"},
       {sys::Errno::emfile, "EMFILE"},
       {sys::Errno::enospc, "ENOSPC"},
       {sys::Errno::erange, "ERANGE"},
       {sys::Errno::enosys, "ENOSYS"},
       {sys::Errno::eexist, "EEXIST"},
       {sys::Errno::eaddrnotavail, "EADDRNOTAVAIL"},
       {sys::Errno::enodata, "ENODATA"},
       {sys::Errno::eproto, "EPROTO"},
       {sys::Errno::eoverflow, "EOVERFLOW"},
       {sys::Errno::eopnotsupp, "EOPNOTSUPP"},
       {sys::Errno::etimedout, "ETIMEDOUT"}}};
};
template <>
struct sim::EnumNames<ibv_wr_opcode> {
  static constexpr std::array<std::pair<ibv_wr_opcode, std::string_view>, 12> values{
      {{IBV_WR_RDMA_WRITE, "RDMA_WRITE"},
       {IBV_WR_RDMA_WRITE_WITH_IMM, "RDMA_WRITE_WITH_IMM"},
       {IBV_WR_SEND, "SEND"},
       {IBV_WR_SEND_WITH_IMM, "SEND_WITH_IMM"},
       {IBV_WR_RDMA_READ, "RDMA_READ"},
       {IBV_WR_ATOMIC_CMP_AND_SWP, "ATOMIC_CMP_AND_SWP"},
       {IBV_WR_ATOMIC_FETCH_AND_ADD, "ATOMIC_FETCH_AND_ADD"},
       {IBV_WR_LOCAL_INV, "LOCAL_INV"},
       {IBV_WR_BIND_MW, "BIND_MW"},
       {IBV_WR_SEND_WITH_INV, "SEND_WITH_INV"},
       {IBV_WR_TSO, "TSO"},
       {IBV_WR_DRIVER1, "DRIVER1"}}};
};
template <>
struct sim::EnumNames<ibv_send_flags> {
  static constexpr std::array<std::pair<ibv_send_flags, std::string_view>, 5> values{{{IBV_SEND_FENCE, "FENCE"},
                                                                                      {IBV_SEND_SIGNALED, "SIGNALED"},
                                                                                      {IBV_SEND_SOLICITED, "SOLICITED"},
                                                                                      {IBV_SEND_INLINE, "INLINE"},
                                                                                      {IBV_SEND_IP_CSUM, "IP_CSUM"}}};
};
template <>
struct sim::EnumNames<ibv_wc_status> {
  static constexpr std::array<std::pair<ibv_wc_status, std::string_view>, 24> values{
      {{IBV_WC_SUCCESS, "SUCCESS"},
       {IBV_WC_LOC_LEN_ERR, "LOC_LEN_ERR"},
       {IBV_WC_LOC_QP_OP_ERR, "LOC_QP_OP_ERR"},
       {IBV_WC_LOC_EEC_OP_ERR, "LOC_EEC_OP_ERR"},
       {IBV_WC_LOC_PROT_ERR, "LOC_PROT_ERR"},
       {IBV_WC_WR_FLUSH_ERR, "WR_FLUSH_ERR"},
       {IBV_WC_MW_BIND_ERR, "MW_BIND_ERR"},
       {IBV_WC_BAD_RESP_ERR, "BAD_RESP_ERR"},
       {IBV_WC_LOC_ACCESS_ERR, "LOC_ACCESS_ERR"},
       {IBV_WC_REM_INV_REQ_ERR, "REM_INV_REQ_ERR"},
       {IBV_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR"},
       {IBV_WC_REM_OP_ERR, "REM_OP_ERR"},
       {IBV_WC_RETRY_EXC_ERR, "RETRY_EXC_ERR"},
       {IBV_WC_RNR_RETRY_EXC_ERR, "RNR_RETRY_EXC_ERR"},
       {IBV_WC_LOC_RDD_VIOL_ERR, "LOC_RDD_VIOL_ERR"},
       {IBV_WC_REM_INV_RD_REQ_ERR, "REM_INV_RD_REQ_ERR"},
       {IBV_WC_REM_ABORT_ERR, "REM_ABORT_ERR"},
       {IBV_WC_INV_EECN_ERR, "INV_EECN_ERR"},
       {IBV_WC_INV_EEC_STATE_ERR, "INV_EEC_STATE_ERR"},
       {IBV_WC_FATAL_ERR, "FATAL_ERR"},
       {IBV_WC_RESP_TIMEOUT_ERR, "RESP_TIMEOUT_ERR"},
       {IBV_WC_GENERAL_ERR, "GENERAL_ERR"},
       {IBV_WC_TM_ERR, "TM_ERR"},
       {IBV_WC_TM_RNDV_INCOMPLETE, "TM_RNDV_INCOMPLETE"}}};
};
template <>
struct sim::EnumNames<ibv_wc_opcode> {
  static constexpr std::array<std::pair<ibv_wc_opcode, std::string_view>, 10> values{
      {{IBV_WC_SEND, "SEND"},
       {IBV_WC_RDMA_WRITE, "RDMA_WRITE"},
       {IBV_WC_RDMA_READ, "RDMA_READ"},
       {IBV_WC_COMP_SWAP, "COMP_SWAP"},
       {IBV_WC_FETCH_ADD, "FETCH_ADD"},
       {IBV_WC_BIND_MW, "BIND_MW"},
       {IBV_WC_LOCAL_INV, "LOCAL_INV"},
       {IBV_WC_TSO, "TSO"},
       {IBV_WC_RECV, "RECV"},
       {IBV_WC_RECV_RDMA_WITH_IMM, "RECV_RDMA_WITH_IMM"}}};
};
template <>
struct sim::EnumNames<ibv_wc_flags> {
  static constexpr std::array<std::pair<ibv_wc_flags, std::string_view>, 4> values{{{IBV_WC_GRH, "GRH"},
                                                                                    {IBV_WC_WITH_IMM, "WITH_IMM"},
                                                                                    {IBV_WC_IP_CSUM_OK, "IP_CSUM_OK"},
                                                                                    {IBV_WC_WITH_INV, "WITH_INV"}}};
};
template <>
struct sim::EnumNames<ibv_access_flags> {
  static constexpr std::array<std::pair<ibv_access_flags, std::string_view>, 7> values{
      {{IBV_ACCESS_LOCAL_WRITE, "LOCAL_WRITE"},
       {IBV_ACCESS_REMOTE_WRITE, "REMOTE_WRITE"},
       {IBV_ACCESS_REMOTE_READ, "REMOTE_READ"},
       {IBV_ACCESS_REMOTE_ATOMIC, "REMOTE_ATOMIC"},
       {IBV_ACCESS_MW_BIND, "MW_BIND"},
       {IBV_ACCESS_ZERO_BASED, "ZERO_BASED"},
       {IBV_ACCESS_RELAXED_ORDERING, "RELAXED_ORDERING"}}};
};
template <>
struct sim::EnumNames<ibv_qp_type> {
  static constexpr std::array<std::pair<ibv_qp_type, std::string_view>, 6> values{{{IBV_QPT_RC, "RC"},
                                                                                   {IBV_QPT_UC, "UC"},
                                                                                   {IBV_QPT_UD, "UD"},
                                                                                   {IBV_QPT_XRC_SEND, "XRC_SEND"},
                                                                                   {IBV_QPT_XRC_RECV, "XRC_RECV"},
                                                                                   {IBV_QPT_RAW_PACKET, "RAW_PACKET"}}};
};
template <>
struct sim::EnumNames<ibv_qp_state> {
  static constexpr std::array<std::pair<ibv_qp_state, std::string_view>, 8> values{{{IBV_QPS_RESET, "RESET"},
                                                                                    {IBV_QPS_INIT, "INIT"},
                                                                                    {IBV_QPS_RTR, "RTR"},
                                                                                    {IBV_QPS_RTS, "RTS"},
                                                                                    {IBV_QPS_SQD, "SQD"},
                                                                                    {IBV_QPS_SQE, "SQE"},
                                                                                    {IBV_QPS_ERR, "ERR"},
                                                                                    {IBV_QPS_UNKNOWN, "UNKNOWN"}}};
};
template <>
struct sim::EnumNames<ibv_mw_type> {
  static constexpr std::array<std::pair<ibv_mw_type, std::string_view>, 2> values{
      {{IBV_MW_TYPE_1, "TYPE_1"}, {IBV_MW_TYPE_2, "TYPE_2"}}};
};
template <>
struct sim::EnumNames<ibv_event_type> {
  static constexpr std::array<std::pair<ibv_event_type, std::string_view>, 20> values{
      {{IBV_EVENT_CQ_ERR, "CQ_ERR"},
       {IBV_EVENT_QP_FATAL, "QP_FATAL"},
       {IBV_EVENT_QP_REQ_ERR, "QP_REQ_ERR"},
       {IBV_EVENT_QP_ACCESS_ERR, "QP_ACCESS_ERR"},
       {IBV_EVENT_COMM_EST, "COMM_EST"},
       {IBV_EVENT_SQ_DRAINED, "SQ_DRAINED"},
       {IBV_EVENT_PATH_MIG, "PATH_MIG"},
       {IBV_EVENT_PATH_MIG_ERR, "PATH_MIG_ERR"},
       {IBV_EVENT_DEVICE_FATAL, "DEVICE_FATAL"},
       {IBV_EVENT_PORT_ACTIVE, "PORT_ACTIVE"},
       {IBV_EVENT_PORT_ERR, "PORT_ERR"},
       {IBV_EVENT_LID_CHANGE, "LID_CHANGE"},
       {IBV_EVENT_PKEY_CHANGE, "PKEY_CHANGE"},
       {IBV_EVENT_SM_CHANGE, "SM_CHANGE"},
       {IBV_EVENT_SRQ_ERR, "SRQ_ERR"},
       {IBV_EVENT_SRQ_LIMIT_REACHED, "SRQ_LIMIT_REACHED"},
       {IBV_EVENT_QP_LAST_WQE_REACHED, "QP_LAST_WQE_REACHED"},
       {IBV_EVENT_CLIENT_REREGISTER, "CLIENT_REREGISTER"},
       {IBV_EVENT_GID_CHANGE, "GID_CHANGE"},
       {IBV_EVENT_WQ_FATAL, "WQ_FATAL"}}};
};
