// SPDX-License-Identifier: Apache-2.0
// The system calls that a process of the simulated machine makes. verbs_frontend reaches the kernel only through this
// interface and the real uverbs command ABI (<rdma/ib_user_verbs.h>, <rdma/mlx5-abi.h>), as libibverbs does on Linux.
// Every call runs on cpu::current() and charges it; results are >= 0 or -errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "memory/address_space.h"
#include "sim/units.h"

namespace kernel {

struct PollFd {
  int fd;
  short events;  ///< POLLIN
  short revents;
};

/// As struct epoll_event: EPOLLIN, and EPOLLET or EPOLLONESHOT in the interest list.
struct EpollEvent {
  std::uint32_t events = 0;
  std::uint64_t data = 0;
};

struct Syscalls {
  virtual ~Syscalls() = default;
  /// "/dev/infiniband/uverbs0" and so on.
  virtual int open(std::string_view path, int flags) = 0;
  virtual int close(int fd) = 0;
  /// On a uverbs fd: one uverbs command (header, body, driver data). On other fds -EINVAL.
  virtual long write(int fd, const void* data, std::size_t n) = 0;
  /// On a completion channel: one 8-byte record; on an async fd: one 16-byte record. Blocks unless O_NONBLOCK.
  virtual long read(int fd, void* data, std::size_t n) = 0;
  /// Maps a UAR page (offset as mlx5 encodes it: command and page index times the page size). Va as value, or -errno.
  virtual long mmap(int fd, std::size_t length, std::uint64_t offset) = 0;
  virtual int munmap(memory::Va at, std::size_t length) = 0;
  /// Waits until an fd is ready; negative timeout = forever. Returns the number of ready fds.
  virtual int poll(std::span<PollFd> fds, sim::Picos timeout) = 0;
  /// epoll_create1(0): a descriptor or -errno.
  virtual int epoll_create() = 0;
  /// EPOLL_CTL_ADD, MOD, DEL of an event file. 0 or -errno as epoll_ctl(2); -EPERM for a file without poll, -EINVAL for
  /// events that are not modelled.
  virtual int epoll_ctl(int epfd, int op, int fd, const EpollEvent& event) = 0;
  /// Waits until a file of the interest list is ready; negative timeout = forever. Number of events in `out`, or -errno.
  virtual int epoll_wait(int epfd, std::span<EpollEvent> out, sim::Picos timeout) = 0;
  virtual int set_nonblock(int fd, bool on) = 0;
  /// File status flags as fcntl(F_GETFL) gives them: access mode and O_NONBLOCK; or -errno.
  virtual int flags(int fd) = 0;
  /// Content of a sysfs file ("/sys/class/infiniband/mlx5_0/ports/1/gids/0"), empty if there is none.
  virtual std::optional<std::string> sysfs_read(std::string_view path) = 0;
  virtual std::vector<std::string> sysfs_list(std::string_view dir) = 0;
  virtual memory::AddressSpace& space() = 0;
};

}  // namespace kernel
