// SPDX-License-Identifier: Apache-2.0
// epoll and its system calls. A level-triggered file is ready while it holds a record, an edge-triggered one when a record has
// come since it was last reported, or since it was added. A file leaves the list when its descriptor is closed. The cost of a
// wait does not depend on the files that are not ready. Not modelled: nesting, EPOLLEXCLUSIVE, files other than event files.
// Source: epoll_ctl(2), epoll_wait(2).
#include "kernel/epoll.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "kernel/process.h"

namespace kernel {

namespace {
constexpr std::uint32_t kSupported = static_cast<std::uint32_t>(EPOLLIN) | static_cast<std::uint32_t>(EPOLLET) |
                                     static_cast<std::uint32_t>(EPOLLONESHOT);
bool has(std::uint32_t events, std::uint32_t bit) { return (events & bit) != 0; }
}  // namespace

void Epoll::forget_closed() {
  std::erase_if(interests_, [](const Interest& i) {
    const auto file = i.file.lock();
    return file == nullptr || file->closed();
  });
}

int Epoll::control(int op, int fd, const std::shared_ptr<EventFile>& file, const EpollEvent& event) {
  forget_closed();
  const auto it = std::find_if(interests_.begin(), interests_.end(), [fd](const Interest& i) { return i.fd == fd; });
  if (op != EPOLL_CTL_DEL && has(event.events, ~kSupported)) return -EINVAL;
  switch (op) {
    case EPOLL_CTL_ADD:
      if (it != interests_.end()) return -EEXIST;
      interests_.push_back({fd, file, event});
      return 0;
    case EPOLL_CTL_MOD:
      if (it == interests_.end()) return -ENOENT;
      *it = {fd, file, event};
      return 0;
    case EPOLL_CTL_DEL:
      if (it == interests_.end()) return -ENOENT;
      interests_.erase(it);
      return 0;
    default:
      return -EINVAL;
  }
}

bool Epoll::is_ready(const Interest& i, const EventFile& file) {
  if (i.off || !has(i.event.events, EPOLLIN) || !file.readable()) return false;
  return !has(i.event.events, EPOLLET) || i.fresh || i.seen != file.records();
}

int Epoll::collect(std::span<EpollEvent> out) {
  forget_closed();
  std::size_t n = 0;
  const std::size_t all = interests_.size();
  std::size_t looked = 0;
  for (; looked < all && n < out.size(); ++looked) {
    Interest& i = interests_[(turn_ + looked) % all];
    const auto file = i.file.lock();
    if (!is_ready(i, *file)) continue;
    i.seen = file->records();
    i.fresh = false;
    i.off = has(i.event.events, EPOLLONESHOT);
    out[n++] = {static_cast<std::uint32_t>(EPOLLIN), i.event.data};
  }
  turn_ = all == 0 ? 0 : (turn_ + looked) % all;
  return static_cast<int>(n);
}

bool Epoll::ready() const {
  return std::any_of(interests_.begin(), interests_.end(), [](const Interest& i) {
    const auto file = i.file.lock();
    return file != nullptr && !file->closed() && is_ready(i, *file);
  });
}

void Epoll::enlist(Waiter& waiter) {
  for (const Interest& i : interests_)
    if (const auto file = i.file.lock(); file != nullptr && !i.off) file->enlist(waiter);
}

int Process::epoll_create() {
  enter();
  const int fd = take_descriptor();
  if (fd >= 0) files_[static_cast<std::size_t>(fd - kFirst)].epoll = std::make_shared<Epoll>();
  leave();
  return fd;
}

int Process::epoll_ctl(int epfd, int op, int fd, const EpollEvent& event) {
  enter();
  cpu::current().compute(kernel_.config().syscall.epoll_ctl);
  const File *const set = find(epfd), *const target = find(fd);
  int result = -EBADF;
  if (set != nullptr && target != nullptr) {
    if (set->epoll == nullptr) result = -EINVAL;
    else if (target->events == nullptr) result = -EPERM;  // a file without poll()
    else result = set->epoll->control(op, fd, target->events, event);
  }
  leave();
  return result;
}

int Process::epoll_wait(int epfd, std::span<EpollEvent> out, sim::Picos timeout) {
  enter();
  File* const f = find(epfd);
  int result = f == nullptr ? -EBADF : f->epoll == nullptr || out.empty() ? -EINVAL : 0;
  if (result == 0) {
    const std::shared_ptr<Epoll> set = f->epoll;
    const auto look = [&] { return (result = set->collect(out)) != 0; };
    wait_until(
        timeout, sim::Picos{0}, look, [&](Waiter& w) { set->enlist(w); }, "epoll_wait", "epoll_wait with a time limit");
    cpu::current().compute(kernel_.config().syscall.epoll_event * result);
  }
  leave();
  return result;
}

}  // namespace kernel
