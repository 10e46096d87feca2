// SPDX-License-Identifier: Apache-2.0
// epoll(7) on completion channels and async event files: an interest list, level or edge triggered.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernel/syscalls.h"
#include "kernel/uverbs/event_file.h"
#include "kernel/wait.h"

namespace kernel {

class Epoll {
 public:
  /// EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL of the file behind descriptor `fd`. 0; -EEXIST, -ENOENT, or -EINVAL for
  /// events other than EPOLLIN with EPOLLET and EPOLLONESHOT, and for an unknown operation.
  int control(int op, int fd, const std::shared_ptr<EventFile>& file, const EpollEvent& event);
  /// The files that are ready, at most as many as fit; takes them for reported. Turns are fair: a later call begins where an
  /// earlier one had no room.
  int collect(std::span<EpollEvent> out);
  /// collect() would find something.
  bool ready() const;
  void enlist(Waiter& waiter);

 private:
  struct Interest {
    int fd = -1;
    std::weak_ptr<EventFile> file;
    EpollEvent event;
    std::uint64_t seen = 0;  // edge: records that had come when it was reported
    bool fresh = true;       // added or modified since it was last reported
    bool off = false;        // EPOLLONESHOT has been used up
  };
  static bool is_ready(const Interest& i, const EventFile& file);
  void forget_closed();

  std::vector<Interest> interests_;
  std::size_t turn_ = 0;
};

}  // namespace kernel
