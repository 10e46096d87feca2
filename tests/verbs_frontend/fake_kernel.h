// SPDX-License-Identifier: Apache-2.0
// A kernel that answers the uverbs commands with the fixed numbers under which the golden vectors were recorded.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>
#include <cerrno>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernel/syscalls.h"

namespace verbs::test {

class FakeKernel : public kernel::Syscalls {
 public:
  explicit FakeKernel(memory::AddressSpace& space) : space_(space) {}

  // What the next commands answer.
  std::uint32_t bfreg_index = 24;
  std::uint32_t first_cqn = 0x456, first_qpn = 0x123, first_srqn = 0x678;
  std::uint32_t atomic_cap = 1;
  std::uint32_t cqe_version = 1;
  std::uint8_t link_layer = 1;  ///< IBV_LINK_LAYER_INFINIBAND
  std::array<std::uint8_t, 6> dmac{0x02, 0x11, 0x22, 0x33, 0x44, 0x55};
  int fail_next = 0;                            ///< errno of the next command
  std::vector<std::vector<std::byte>> channel;  ///< what read() of the channel returns, in order

  // What they asked.
  std::vector<std::uint32_t> commands;
  struct {
    std::uint32_t cqe = 0, comp_vector = 0;
    std::int32_t comp_channel = -1;
  } cq_request;
  mlx5_ib_create_cq cq_driver{};
  struct {
    std::uint32_t cqe = 0;
    mlx5_ib_resize_cq driver{};
  } resize;
  std::byte* resize_marker = nullptr;  ///< where RESIZE_CQ puts the op_own byte of its CQE
  ibv_qp_cap qp_caps{};
  std::uint8_t sq_sig_all = 0;
  ibv_srq_attr srq_request{};
  mlx5_ib_create_srq srq_driver{};
  mlx5_ib_create_qp qp_driver{};
  mlx5_ib_alloc_ucontext_req_v2 context_request{};
  std::vector<memory::Va> uar_pages;  ///< in the order of mapping
  std::vector<int> closed;
  std::uint32_t comp_events_reported = 0;

  int open(std::string_view path, int flags) override;
  int close(int fd) override;
  long write(int fd, const void* data, std::size_t n) override;
  long read(int fd, void* data, std::size_t n) override;
  long mmap(int fd, std::size_t length, std::uint64_t offset) override;
  int munmap(memory::Va at, std::size_t length) override;
  int poll(std::span<kernel::PollFd>, sim::Picos) override { return 0; }
  int epoll_create() override { return -ENOSYS; }
  int epoll_ctl(int, int, int, const kernel::EpollEvent&) override { return -ENOSYS; }
  int epoll_wait(int, std::span<kernel::EpollEvent>, sim::Picos) override { return -ENOSYS; }
  int set_nonblock(int, bool) override { return 0; }
  int flags(int) override { return 0; }
  std::optional<std::string> sysfs_read(std::string_view path) override;
  std::vector<std::string> sysfs_list(std::string_view dir) override;
  memory::AddressSpace& space() override { return space_; }

 private:
  memory::AddressSpace& space_;
  std::uint32_t cqs_ = 0, qps_ = 0;
};

}  // namespace verbs::test
