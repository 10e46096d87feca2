// SPDX-License-Identifier: Apache-2.0
// System calls of a process. Every call charges its entry and exit; a call on an event file may block its thread. A file
// that several calls use stays alive until the last of them returns. Regular files are names without content, enough to
// share an XRC domain. Not modelled: signals, dup, fork.
#include "kernel/process.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "cpu/core.h"
#include "kernel/sysfs.h"
#include "kernel/uverbs/uverbs_device.h"

namespace kernel {

Process::Process(Kernel& kernel, memory::AddressSpace& space) : kernel_(kernel), space_(space) {}

Process::~Process() = default;

void Process::enter() {
  cpu::current().enter_kernel();
  cpu::current().compute(kernel_.config().syscall.entry);
}

// A thread that was killed meanwhile does not come back from here.
void Process::leave() {
  cpu::current().compute(kernel_.config().syscall.exit);
  cpu::current().leave_kernel();
}

Process::File* Process::find(int fd) {
  const auto i = static_cast<std::size_t>(fd - kFirst);
  return fd >= kFirst && i < files_.size() && files_[i].used() ? &files_[i] : nullptr;
}

int Process::take_descriptor() {
  const auto it = std::find_if(files_.begin(), files_.end(), [](const File& f) { return !f.used(); });
  if (it != files_.end()) return static_cast<int>(it - files_.begin()) + kFirst;
  if (files_.size() + kFirst >= kMost) return -EMFILE;
  files_.emplace_back();
  return static_cast<int>(files_.size()) - 1 + kFirst;
}

int Process::install(std::shared_ptr<EventFile> file, bool async) {
  const int fd = take_descriptor();
  if (fd < 0) return fd;
  File& f = files_[static_cast<std::size_t>(fd - kFirst)];
  f.events = std::move(file);
  f.async = async;
  return fd;
}

void Process::uninstall(int fd) {
  if (File* f = find(fd); f != nullptr) *f = {};
}

std::shared_ptr<EventFile> Process::channel(int fd) {
  const File* const f = find(fd);
  return f != nullptr && f->events != nullptr && !f->async ? f->events : nullptr;
}

long Process::inode(int fd) {
  const File* const f = find(fd);
  return f != nullptr && f->inode != 0 ? static_cast<long>(f->inode) : -EBADF;
}

const UverbsFile* Process::context(int fd) const {
  const auto i = static_cast<std::size_t>(fd - kFirst);
  return fd >= kFirst && i < files_.size() ? files_[i].uverbs.get() : nullptr;
}

int Process::open_files() const {
  return static_cast<int>(std::count_if(files_.begin(), files_.end(), [](const File& f) { return f.used(); }));
}

int Process::open(std::string_view path, int flags) {
  enter();
  cpu::current().compute(kernel_.config().syscall.file_open);
  cpu::current().sync();
  int result = -ENOENT;
  constexpr std::string_view kNodes = "/dev/infiniband/";
  if (path.starts_with(kNodes) && kernel_.ready()) {
    if ((flags & O_ACCMODE) != O_RDWR) {
      result = -EACCES;
    } else if (auto file =
                   kernel_.uverbs().open(path.substr(kNodes.size()), space_, static_cast<DescriptorTable&>(*this));
               file != nullptr && (result = take_descriptor()) >= 0) {
      files_[static_cast<std::size_t>(result - kFirst)] = {std::move(file), nullptr, 0, (flags & O_NONBLOCK) != 0,
                                                           false};
    }
  } else if (!path.starts_with("/dev/") && !path.starts_with("/sys/")) {
    const long inode = kernel_.files().open(path, flags);
    result = inode < 0 ? static_cast<int>(inode) : take_descriptor();
    if (result >= 0) files_[static_cast<std::size_t>(result - kFirst)].inode = static_cast<std::uint64_t>(inode);
  }
  leave();
  return result;
}

int Process::close(int fd) {
  enter();
  int result = 0;
  if (File* f = find(fd); f == nullptr) {
    result = -EBADF;
  } else {
    cpu::current().compute(kernel_.config().syscall.file_open);
    const File gone = std::exchange(*f, File{});
    if (gone.uverbs != nullptr) gone.uverbs->close();
    if (gone.events != nullptr) gone.events->close();
  }
  leave();
  return result;
}

void Process::exit() {
  for (std::size_t i = 0; i < files_.size(); ++i)
    if (files_[i].used()) close(static_cast<int>(i) + kFirst);
  for (const Mapping& m : mappings_) space_.unmap_mmio(m.at);
  mappings_.clear();
}

void Process::disconnect_mappings(const UverbsFile& file) {
  for (const Mapping& m : mappings_)
    if (m.file == &file) space_.disconnect_mmio(m.at);
}

void Process::kill() {
  const sim::Picos now = kernel_.context().now();
  for (cpu::Thread* t : threads_) {
    if (t->finished() || t->killed() || t == cpu::current_or_null()) continue;
    ++dying_;
    Waiter& w = kernel_.waiters().of(*t);
    t->kill(now);
    if (w.interruptible) w.wake(now);
  }
}

void Process::exit_group() {
  cpu::current().sync();
  ++dying_;
  kill();
  thread_died();
}

void Process::thread_died() {
  if (--dying_ == 0) exit();
}

long Process::write(int fd, const void* data, std::size_t n) {
  enter();
  long result = -EBADF;
  if (File* f = find(fd); f != nullptr) {
    const std::shared_ptr<UverbsFile> file = f->uverbs;
    result = file != nullptr ? file->command(data, n) : -EINVAL;
  }
  leave();
  return result;
}

long Process::read(int fd, void* data, std::size_t n) {
  enter();
  File* const f = find(fd);
  long result = -EBADF;
  if (f != nullptr && (f->events == nullptr || data == nullptr)) {
    result = f->events == nullptr ? -EINVAL : -EFAULT;
  } else if (f != nullptr) {
    const std::shared_ptr<EventFile> file = f->events;
    result = file->read(kernel_.waiters().current(), data, n, f->nonblock);
    if (result >= 0) {  // the file has charged the way out, and accounted for it
      cpu::current().leave_kernel();
      return result;
    }
  }
  leave();
  return result;
}

long Process::mmap(int fd, std::size_t length, std::uint64_t offset) {
  enter();
  long result = -EBADF;
  std::shared_ptr<UverbsFile> file;
  if (File* f = find(fd); f != nullptr) {
    file = f->uverbs;
    result = file != nullptr ? file->map(length, offset) : -ENODEV;
  }
  if (result > 0) mappings_.push_back({{static_cast<std::uint64_t>(result)}, file.get()});
  leave();
  return result;
}

int Process::munmap(memory::Va at, std::size_t length) {
  enter();
  int result = -EINVAL;
  if (const auto it = std::find_if(mappings_.begin(), mappings_.end(), [&](const Mapping& m) { return m.at == at; });
      it != mappings_.end() && length == memory::kPageSize) {
    cpu::current().compute(kernel_.config().syscall.map_page);
    space_.unmap_mmio(at);
    mappings_.erase(it);
    result = 0;
  }
  leave();
  return result;
}

void Process::on_timeout(void* waiter, std::uint64_t generation) {
  auto* const w = static_cast<Waiter*>(waiter);
  if (w->generation == generation) w->wake(w->thread->core().context().now());
}

int Process::poll(std::span<PollFd> fds, sim::Picos timeout) {
  enter();
  int ready = 0;
  const auto look = [&] {
    for (PollFd& p : fds) {
      const File* const f = find(p.fd);
      p.revents = 0;
      if (p.fd < 0) continue;
      if (f == nullptr) p.revents = POLLNVAL;
      else if (f->readable()) p.revents = static_cast<short>(p.events & POLLIN);
      if (p.revents != 0) ++ready;
    }
    return ready != 0;
  };
  const auto enlist = [&](Waiter& self) {
    for (const PollFd& p : fds) {
      File* const f = find(p.fd);
      if (f == nullptr || (p.events & POLLIN) == 0) continue;
      if (f->events != nullptr) f->events->enlist(self);
      if (f->epoll != nullptr) f->epoll->enlist(self);
    }
  };
  wait_until(timeout, kernel_.config().syscall.poll_fd * static_cast<std::int64_t>(fds.size()), look, enlist, "poll",
             "poll with a time limit");
  leave();
  return ready;
}

int Process::set_nonblock(int fd, bool on) {
  enter();
  File* const f = find(fd);
  if (f != nullptr) f->nonblock = on;
  leave();
  return f != nullptr ? 0 : -EBADF;
}

int Process::flags(int fd) {
  enter();
  const File* const f = find(fd);
  int result = -EBADF;
  if (f != nullptr) result = (f->events != nullptr ? O_RDONLY : O_RDWR) | (f->nonblock ? O_NONBLOCK : 0);
  leave();
  return result;
}

std::optional<std::string> Process::sysfs_read(std::string_view path) {
  enter();
  cpu::current().compute(kernel_.config().syscall.sysfs_read);
  cpu::current().sync();
  auto text = kernel::sysfs_read(kernel_, path);
  leave();
  return text;
}

std::vector<std::string> Process::sysfs_list(std::string_view dir) {
  enter();
  cpu::current().compute(kernel_.config().syscall.sysfs_read);
  cpu::current().sync();
  auto names = kernel::sysfs_list(kernel_, dir);
  leave();
  return names;
}

}  // namespace kernel
