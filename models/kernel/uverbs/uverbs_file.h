// SPDX-License-Identifier: Apache-2.0
// One open of /dev/infiniband/uverbsN: its context, its objects by handle, its commands. uverbs copies commands, finds and
// locks the objects behind handles and answers; the RDMA core and the driver do what the command asks (core/verbs.h).
#pragma once

#include <rdma/ib_user_verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/core/objects.h"
#include "kernel/core/udata.h"
#include "kernel/kernel.h"
#include "kernel/uverbs/event_file.h"
#include "kernel/wait.h"

namespace kernel {

class UverbsFile;
struct UverbsDevice;

/// The process that owns a uverbs file: its descriptors and its name.
struct DescriptorTable {
  virtual ~DescriptorTable() = default;
  /// A new descriptor for an event file, or -EMFILE.
  virtual int install(std::shared_ptr<EventFile> file, bool async) = 0;
  virtual void uninstall(int fd) = 0;
  /// The completion channel behind a descriptor, null if it is something else.
  virtual std::shared_ptr<EventFile> channel(int fd) = 0;
  /// Inode of the regular file behind a descriptor; -EBADF if there is none.
  virtual long inode(int fd) = 0;
  virtual const ResourceOwner& owner() const = 0;
  /// The device behind a file is gone: what the process has mapped of it has no effect any more.
  virtual void disconnect_mappings(const UverbsFile& file) = 0;
};

class UverbsFile {
 public:
  UverbsFile(std::shared_ptr<UverbsDevice> node, memory::AddressSpace& user, DescriptorTable& descriptors);
  ~UverbsFile();

  /// One uverbs command. Its length, or -errno.
  long command(const void* data, std::size_t n);
  /// mmap of a UAR page; `offset` as mlx5 encodes it. Address or -errno.
  long map(std::size_t length, std::uint64_t offset);
  /// Releases everything that is left, in an order that use counts allow (S-OBJ-9).
  void close();
  bool closed() const { return closed_; }
  /// The device goes (S-DEV-9). First DEVICE_FATAL is queued; then the objects are destroyed, while commands that come
  /// meanwhile wait, mappings lose their effect, and readers of events get EIO. Blocks the calling kernel thread.
  void device_fatal();
  void disassociate();

  std::size_t object_count() const { return objects_.size(); }
  /// Null before GET_CONTEXT and after the close.
  const Ucontext* ucontext() const { return ucontext_.get(); }
  /// The object behind a handle, for inspection; null if there is none of that type.
  template <class T>
  const T* inspect(std::uint32_t handle) const {
    const auto it = objects_.find(handle);
    return it == objects_.end() ? nullptr : dynamic_cast<const T*>(it->second.get());
  }

 private:
  /// A command being executed: its body, its response buffer, and the driver's parts of both.
  struct Io {
    std::span<const std::byte> in;  ///< after the command headers
    std::byte* out = nullptr;
    std::size_t out_size = 0;
    std::size_t request_size = 0, response_size = 0;
    Udata udata;
    template <class T>
    T request() const {
      T t{};
      std::memcpy(&t, in.data(), std::min(in.size(), sizeof t));
      return t;
    }
    template <class T>
    void respond(const T& t) const {
      if (out_size != 0) std::memcpy(out, &t, std::min(out_size, sizeof t));
    }
  };
  struct Method {
    std::uint32_t command;
    bool extended;
    std::size_t request_size, response_size;
    int (UverbsFile::*run)(Io&);
    bool destroys = false;  ///< succeeds when the device is gone
  };
  static const Method* find_method(std::uint32_t command, bool extended);
  static int known_command(std::uint32_t command, bool extended);
  int parse(const std::byte* data, std::size_t n, const Method*& method, Io& io);

  /// An object in use by a command; other commands may use it too, none may destroy it.
  template <class T>
  class Use {
   public:
    Use() = default;
    explicit Use(T* p) : p_(p) { ++p_->uobject.commands; }
    Use(Use&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
    Use& operator=(Use&& o) noexcept {
      std::swap(p_, o.p_);
      return *this;
    }
    ~Use() {
      if (p_ != nullptr) --p_->uobject.commands;
    }
    explicit operator bool() const { return p_ != nullptr; }
    T* operator->() const { return p_; }
    T& operator*() const { return *p_; }
    T* get() const { return p_; }

   private:
    T* p_ = nullptr;
  };
  /// Look-up for use. -ENOENT: no such handle; -EINVAL: another type; -EBUSY: being destroyed (S-DEV-11).
  template <class T>
  int use(ObjectType type, std::uint32_t handle, Use<T>& result) {
    const auto it = objects_.find(handle);
    if (it == objects_.end()) return -ENOENT;
    if (it->second->type != type) return -EINVAL;
    if (it->second->uobject.destroying) return -EBUSY;
    result = Use<T>(static_cast<T*>(it->second.get()));
    return 0;
  }
  /// As use(), for an object that another one is created from: what is not there is an invalid argument (S-OBJ-47).
  template <class T>
  int parent(ObjectType type, std::uint32_t handle, Use<T>& result) {
    const int error = use(type, handle, result);
    return error == -ENOENT ? -EINVAL : error;
  }
  /// Destroys the object behind a handle. `before` sees it once it can no longer be used, before its memory goes.
  int destroy(ObjectType type, std::uint32_t handle, void (*before)(const Uobject&, void*) = nullptr,
              void* arg = nullptr);
  int tear_down(Object& object);
  /// Gives a new object its handle, and its events to the files of this context.
  std::uint32_t add(std::unique_ptr<Object> object, std::uint64_t user_handle = 0);

  // Commands: uverbs_context.cpp
  int get_context(Io& io);
  int query_device(Io& io);
  int query_device_ex(Io& io);
  int query_port(Io& io);
  int create_comp_channel(Io& io);
  // uverbs_objects.cpp
  int alloc_pd(Io& io);
  int dealloc_pd(Io& io);
  // uverbs_mr.cpp
  int reg_mr(Io& io);
  int rereg_mr(Io& io);
  int dereg_mr(Io& io);
  // uverbs_mw.cpp
  int alloc_mw(Io& io);
  int dealloc_mw(Io& io);
  int create_cq(Io& io);
  int create_cq_ex(Io& io);
  int create_cq_common(const ib_uverbs_ex_create_cq& cmd, Io& io, ib_uverbs_create_cq_resp& resp);
  int modify_cq_ex(Io& io);
  int resize_cq(Io& io);
  int destroy_cq(Io& io);
  int create_ah(Io& io);
  int destroy_ah(Io& io);
  // uverbs_srq.cpp
  int create_srq(Io& io);
  int create_xsrq(Io& io);
  int create_srq_common(const ib_uverbs_create_xsrq& cmd, Io& io);
  int modify_srq(Io& io);
  int query_srq(Io& io);
  int destroy_srq(Io& io);
  // uverbs_xrc.cpp
  int open_xrcd(Io& io);
  int close_xrcd(Io& io);
  int tear_down_xrcd(Xrcd& xrcd);
  int create_xrc_target(const ib_uverbs_create_qp& cmd, Io& io);
  int open_qp(Io& io);
  // uverbs_qp.cpp
  int create_qp(Io& io);
  int modify_qp(Io& io);
  int query_qp(Io& io);
  int destroy_qp(Io& io);
  // uverbs_multicast.cpp
  int attach_mcast(Io& io);
  int detach_mcast(Io& io);
  void leave_all_groups();
  int check_ports(const Qp& qp, ib_uverbs_modify_qp& cmd) const;

  void begin_use();
  void end_use();
  void release_all();
  Consumer consumer() const { return Consumer(*ucontext_); }
  static void device_event(void* file, ibv_event_type type, std::uint64_t port, sim::trace::Cause cause);

  /// An object whose device is gone: its handle and counts stay until the program destroys it.
  struct Removed {
    ObjectType type{};
    Uobject uobject;
  };

  std::shared_ptr<UverbsDevice> node_;
  Device* device_;  ///< null when it is gone
  Kernel& kernel_;
  memory::AddressSpace& user_;
  DescriptorTable& descriptors_;
  sim::trace::Source trace_;
  bool has_context_ = false, closed_ = false;
  unsigned active_ = 0;  ///< commands being executed
  bool released_ = false, disassociating_ = false;
  Waiter* disassociator_ = nullptr;  ///< waits for the end of the commands
  std::vector<Waiter*> held_up_;     ///< commands that wait for the end of the disassociation
  std::unique_ptr<Ucontext> ucontext_;
  std::shared_ptr<EventFile> async_;
  std::vector<std::weak_ptr<EventFile>> channels_;
  std::map<std::uint32_t, std::unique_ptr<Object>> objects_;
  std::map<std::uint32_t, Removed> removed_;
};

}  // namespace kernel
