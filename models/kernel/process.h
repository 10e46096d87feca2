// SPDX-License-Identifier: Apache-2.0
// One process of a host: its address space, its file descriptors, its system calls.
#pragma once

#include <memory>
#include <vector>

#include "kernel/epoll.h"
#include "kernel/kernel.h"
#include "kernel/syscalls.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

class Process final : public Syscalls, private DescriptorTable {
 public:
  /// `space` and `kernel` outlive the process. Threads of the process call the system calls; they may run concurrently.
  Process(Kernel& kernel, memory::AddressSpace& space);
  ~Process() override;

  int open(std::string_view path, int flags) override;
  int close(int fd) override;
  long write(int fd, const void* data, std::size_t n) override;
  long read(int fd, void* data, std::size_t n) override;
  long mmap(int fd, std::size_t length, std::uint64_t offset) override;
  int munmap(memory::Va at, std::size_t length) override;
  int poll(std::span<PollFd> fds, sim::Picos timeout) override;
  int epoll_create() override;
  int epoll_ctl(int epfd, int op, int fd, const EpollEvent& event) override;
  int epoll_wait(int epfd, std::span<EpollEvent> out, sim::Picos timeout) override;
  int set_nonblock(int fd, bool on) override;
  int flags(int fd) override;
  std::optional<std::string> sysfs_read(std::string_view path) override;
  std::vector<std::string> sysfs_list(std::string_view dir) override;
  memory::AddressSpace& space() override { return space_; }

  /// The process ends: all its files are closed, as the kernel does on exit. From a thread of the process.
  void exit();
  /// exit(2): the other threads are killed; the last of them, or this one, closes the files.
  void exit_group();
  int open_files() const;
  /// A thread of the process, for kill().
  void add_thread(cpu::Thread& thread) { threads_.push_back(&thread); }
  /// SIGKILL, now: no thread of the process runs any more of its program; calls that wait for events are interrupted, others
  /// end first. The last thread to die closes the files. From outside the process.
  void kill();
  /// The end of a killed thread, called on it.
  void thread_died();
  /// Number and name that listings show.
  void set_owner(ResourceOwner owner) { owner_ = std::move(owner); }
  const ResourceOwner& owner() const override { return owner_; }
  /// The context behind a descriptor, null if it is no uverbs file.
  const UverbsFile* context(int fd) const;

 private:
  struct File {
    std::shared_ptr<UverbsFile> uverbs;  // one of the four is set
    std::shared_ptr<EventFile> events;
    std::shared_ptr<Epoll> epoll;
    std::uint64_t inode = 0;
    bool nonblock = false, async = false;
    bool readable() const { return (events != nullptr && events->readable()) || (epoll != nullptr && epoll->ready()); }
    bool used() const { return uverbs != nullptr || events != nullptr || epoll != nullptr || inode != 0; }
  };
  struct Mapping {
    memory::Va at;
    const UverbsFile* file;
  };
  static constexpr int kFirst = 3, kMost = 1024;

  int install(std::shared_ptr<EventFile> file, bool async) override;
  void uninstall(int fd) override;
  std::shared_ptr<EventFile> channel(int fd) override;
  long inode(int fd) override;
  void disconnect_mappings(const UverbsFile& file) override;
  int take_descriptor();
  File* find(int fd);
  void enter();
  void leave();
  /// Blocks the thread until ready() says so or the time is over. Each look costs `scan`; enlist(waiter) asks for a wake-up.
  template <class Ready, class Enlist>
  void wait_until(sim::Picos timeout, sim::Picos scan, Ready&& ready, Enlist&& enlist, const char* forever,
                  const char* limited);
  static void on_timeout(void* waiter, std::uint64_t generation);

  Kernel& kernel_;
  memory::AddressSpace& space_;
  std::vector<File> files_;  // by descriptor - kFirst
  ResourceOwner owner_;
  std::vector<Mapping> mappings_;  // device pages mapped by mmap()
  std::vector<cpu::Thread*> threads_;
  unsigned dying_ = 0;  // killed threads that have not reached their end
};

template <class Ready, class Enlist>
void Process::wait_until(sim::Picos timeout, sim::Picos scan, Ready&& ready, Enlist&& enlist, const char* forever,
                         const char* limited) {
  cpu::Thread& t = cpu::current();
  Waiter& self = kernel_.waiters().current();
  const sim::Picos deadline = timeout < sim::Picos{0} ? sim::kNever : t.now() + timeout;
  for (;;) {
    t.compute(scan);
    t.sync();
    if (ready() || t.now() >= deadline) return;
    self.announce();
    enlist(self);
    if (deadline != sim::kNever) kernel_.context().scheduler.at(deadline, &Process::on_timeout, &self, self.generation);
    self.block(deadline == sim::kNever ? forever : limited, true);
    if (t.killed()) return;
  }
}

}  // namespace kernel
