// SPDX-License-Identifier: Apache-2.0
// Answers of the scripted kernel.
#include "fake_kernel.h"

#include <rdma/ib_user_verbs.h>

#include <cerrno>
#include <cstring>

#include "hca/prm.h"

namespace verbs::test {
namespace {

constexpr int kCmdFd = 3, kAsyncFd = 4, kChannelFd = 5;
constexpr std::uint64_t kUarBus = 0x10'0000'0000;

/// Body of a command at `data`, and the place of its answer (named by the body's first field).
template <class T>
const T& body(const void* data) {
  return *reinterpret_cast<const T*>(static_cast<const std::byte*>(data) + sizeof(ib_uverbs_cmd_hdr));
}
template <class T, class D>
const D& driver(const void* data) {
  return *reinterpret_cast<const D*>(static_cast<const std::byte*>(data) + sizeof(ib_uverbs_cmd_hdr) + sizeof(T));
}
template <class T>
T& answer(std::uint64_t response, std::size_t offset = 0) {
  return *reinterpret_cast<T*>(response + offset);
}

}  // namespace

int FakeKernel::open(std::string_view path, int) { return path == "/dev/infiniband/uverbs0" ? kCmdFd : -ENOENT; }

int FakeKernel::close(int fd) {
  closed.push_back(fd);
  return 0;
}

long FakeKernel::write(int, const void* data, std::size_t n) {
  const auto& hdr = *static_cast<const ib_uverbs_cmd_hdr*>(data);
  commands.push_back(hdr.command);
  if (hdr.in_words * 4U != n) return -EINVAL;
  if (fail_next != 0) return -std::exchange(fail_next, 0);
  switch (hdr.command) {
    case IB_USER_VERBS_CMD_GET_CONTEXT: {
      const auto at = body<ib_uverbs_get_context>(data).response;
      context_request = driver<ib_uverbs_get_context, mlx5_ib_alloc_ucontext_req_v2>(data);
      auto& r = answer<ib_uverbs_get_context_resp>(at);
      r.async_fd = kAsyncFd;
      r.num_comp_vectors = 4;
      auto& d = answer<mlx5_ib_alloc_ucontext_resp>(at, sizeof r);
      d.qp_tab_size = 1 << 18;
      d.bf_reg_size = 512;
      d.tot_bfregs = context_request.total_num_bfregs;
      d.cache_line_size = 64;
      d.max_sq_desc_sz = 1024;
      d.max_rq_desc_sz = 512;
      d.max_send_wqebb = d.max_recv_wr = 32768;
      d.max_srq_recv_wr = 32767;
      d.num_ports = 1;
      d.cqe_version = static_cast<std::uint8_t>(cqe_version);
      d.log_uar_size = 12;
      d.num_uars_per_page = 1;
      break;
    }
    case IB_USER_VERBS_CMD_QUERY_DEVICE: {
      auto& r = answer<ib_uverbs_query_device_resp>(body<ib_uverbs_query_device>(data).response);
      r.fw_ver = 16ULL << 32 | 35ULL << 16 | 1012;
      r.max_qp_wr = 32768;
      r.max_cqe = 4194303;
      r.atomic_cap = atomic_cap;
      r.phys_port_cnt = 1;
      break;
    }
    case IB_USER_VERBS_CMD_QUERY_PORT: {
      const auto& req = body<ib_uverbs_query_port>(data);
      if (req.port_num != 1) return -EINVAL;
      auto& r = answer<ib_uverbs_query_port_resp>(req.response);
      r.state = 4;
      r.max_mtu = r.active_mtu = 5;
      r.gid_tbl_len = 16;
      r.pkey_tbl_len = 1;
      r.lid = 0x22;
      r.link_layer = link_layer;
      break;
    }
    case IB_USER_VERBS_CMD_ALLOC_PD: {
      const auto at = body<ib_uverbs_alloc_pd>(data).response;
      answer<std::uint32_t>(at) = 1;
      answer<std::uint32_t>(at, 4) = 7;
      break;
    }
    case IB_USER_VERBS_CMD_REG_MR: {
      auto& r = answer<ib_uverbs_reg_mr_resp>(body<ib_uverbs_reg_mr>(data).response);
      r.mr_handle = 9;
      r.lkey = 0x1a01;
      r.rkey = 0x1a02;
      break;
    }
    case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
      answer<ib_uverbs_create_comp_channel_resp>(body<ib_uverbs_create_comp_channel>(data).response).fd = kChannelFd;
      break;
    case IB_USER_VERBS_CMD_CREATE_CQ: {
      const auto& req = body<ib_uverbs_create_cq>(data);
      cq_request = {req.cqe, req.comp_vector, req.comp_channel};
      cq_driver = driver<ib_uverbs_create_cq, mlx5_ib_create_cq>(data);
      if (cq_request.cqe < 1 || cq_request.cqe > 4194303) return -EINVAL;
      auto& r = answer<ib_uverbs_create_cq_resp>(req.response);
      r.cq_handle = 20 + cqs_;
      r.cqe = cq_request.cqe;
      answer<mlx5_ib_create_cq_resp>(req.response, sizeof r).cqn = first_cqn + cqs_++;
      break;
    }
    case IB_USER_VERBS_CMD_CREATE_QP: {
      const auto& req = body<ib_uverbs_create_qp>(data);
      qp_caps = {req.max_send_wr, req.max_recv_wr, req.max_send_sge, req.max_recv_sge, req.max_inline_data};
      sq_sig_all = req.sq_sig_all;
      qp_driver = driver<ib_uverbs_create_qp, mlx5_ib_create_qp>(data);
      auto& r = answer<ib_uverbs_create_qp_resp>(req.response);
      r.qp_handle = 30 + qps_;
      r.qpn = first_qpn + qps_++;
      answer<mlx5_ib_create_qp_resp>(req.response, sizeof r).bfreg_index = bfreg_index;
      break;
    }
    case IB_USER_VERBS_CMD_CREATE_SRQ: {
      const auto& req = body<ib_uverbs_create_srq>(data);
      srq_request = {req.max_wr, req.max_sge, req.srq_limit};
      srq_driver = driver<ib_uverbs_create_srq, mlx5_ib_create_srq>(data);
      auto& r = answer<ib_uverbs_create_srq_resp>(req.response);
      r.srq_handle = 40;
      r.max_wr = req.max_wr;
      r.max_sge = req.max_sge;
      answer<mlx5_ib_create_srq_resp>(req.response, sizeof r).srqn = first_srqn;
      break;
    }
    case IB_USER_VERBS_CMD_RESIZE_CQ: {
      const auto& req = body<ib_uverbs_resize_cq>(data);
      resize = {req.cqe, driver<ib_uverbs_resize_cq, mlx5_ib_resize_cq>(data)};
      if (resize_marker != nullptr) *resize_marker = std::byte{MLX5_CQE_RESIZE_CQ << 4};
      answer<ib_uverbs_resize_cq_resp>(req.response).cqe = req.cqe;
      break;
    }
    case IB_USER_VERBS_CMD_MODIFY_QP:
      break;
    case IB_USER_VERBS_CMD_QUERY_QP: {
      auto& r = answer<ib_uverbs_query_qp_resp>(body<ib_uverbs_query_qp>(data).response);
      r.qp_state = 3;
      r.max_recv_wr = qp_caps.max_recv_wr;
      r.max_recv_sge = qp_caps.max_recv_sge;
      break;
    }
    case IB_USER_VERBS_CMD_CREATE_AH: {
      const auto at = body<ib_uverbs_create_ah>(data).response;
      auto& d = answer<mlx5_ib_create_ah_resp>(at, sizeof(ib_uverbs_create_ah_resp));
      std::memcpy(d.dmac, dmac.data(), dmac.size());
      break;
    }
    case IB_USER_VERBS_CMD_DESTROY_CQ:
      answer<ib_uverbs_destroy_cq_resp>(body<ib_uverbs_destroy_cq>(data).response).comp_events_reported =
          comp_events_reported;
      break;
    case IB_USER_VERBS_CMD_DESTROY_QP:
    case IB_USER_VERBS_CMD_DESTROY_SRQ:
    case IB_USER_VERBS_CMD_DEALLOC_PD:
    case IB_USER_VERBS_CMD_DEREG_MR:
    case IB_USER_VERBS_CMD_DESTROY_AH:
      break;
    default:
      return -EOPNOTSUPP;
  }
  return static_cast<long>(n);
}

long FakeKernel::read(int, void* data, std::size_t n) {
  if (channel.empty()) return 0;
  const std::vector<std::byte> record = channel.front();
  channel.erase(channel.begin());
  const std::size_t k = std::min(n, record.size());
  std::memcpy(data, record.data(), k);
  return static_cast<long>(k);
}

long FakeKernel::mmap(int, std::size_t length, std::uint64_t offset) {
  const memory::Va at = space_.map_mmio({kUarBus + offset}, length, memory::MemoryType::write_combining);
  uar_pages.push_back(at);
  return static_cast<long>(at.v);
}

int FakeKernel::munmap(memory::Va at, std::size_t) {
  space_.unmap_mmio(at);
  return 0;
}

std::optional<std::string> FakeKernel::sysfs_read(std::string_view path) {
  static const std::map<std::string, std::string, std::less<>> kFiles{
      {"/sys/class/infiniband_verbs/abi_version", "6\n"},
      {"/sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n"},
      {"/sys/class/infiniband_verbs/uverbs0/abi_version", "1\n"},
      {"/sys/class/infiniband_verbs/uverbs1/ibdev", "other_0\n"},
      {"/sys/class/infiniband/mlx5_0/node_type", "1: CA\n"},
      {"/sys/class/infiniband/mlx5_0/node_guid", "0002:c903:0000:0010\n"},
      {"/sys/class/infiniband/mlx5_0/device/modalias", "pci:v000015B3d00001019sv000015B3sd00000008bc02sc00i00\n"},
      {"/sys/class/infiniband/other_0/device/modalias", "pci:v00001234d00001019sv000015B3sd00000008bc02sc00i00\n"},
      {"/sys/class/infiniband/mlx5_0/ports/1/pkeys/0", "0xffff\n"},
      {"/sys/class/infiniband/mlx5_0/ports/1/gids/4", "0000:0000:0000:0000:0000:0000:0000:0000\n"},
      {"/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0", "IB/RoCE v1\n"},
      {"/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/1", "RoCE v2\n"},
      {"/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/3", "RoCE v2\n"},
  };
  if (const auto it = kFiles.find(path); it != kFiles.end()) return it->second;
  for (const char* i : {"0", "1", "2", "3"})
    if (path == std::string("/sys/class/infiniband/mlx5_0/ports/1/gids/") + i)
      return "fe80:0000:0000:0000:0202:c9ff:fe00:000" + std::string(i) + "\n";
  return std::nullopt;
}

std::vector<std::string> FakeKernel::sysfs_list(std::string_view dir) {
  if (dir == "/sys/class/infiniband_verbs") return {"uverbs1", "abi_version", "uverbs0"};
  return {};
}

}  // namespace verbs::test
