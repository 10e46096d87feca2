// SPDX-License-Identifier: Apache-2.0
// uverbs event files: completion channels (8-byte records) and async event files (16-byte records).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/event_times.h"
#include "kernel/kernel_config.h"
#include "kernel/wait.h"
#include "sim/context.h"
#include "sim/pool.h"

namespace kernel {

/// One queued record. `object` identifies whose event it is, so that destroying the object can take it back; `reported`
/// is that object's count of events that were read.
struct QueuedEvent {
  std::uint64_t element = 0;  ///< user handle, or port number
  std::uint32_t type = 0;     ///< enum ib_event_type; unused in completion records
  std::uint32_t number = 0;   ///< of the object or port, for traces
  const void* object = nullptr;
  std::uint32_t* reported = nullptr;
  sim::trace::Cause cause;
  EventTimes times{};  ///< completion records
};

class EventFile {
 public:
  enum class Kind : std::uint8_t { completion, async };
  EventFile(sim::Context& context, const KernelConfig& config, Kind kind, std::int32_t host);

  std::size_t record_size() const { return kind_ == Kind::completion ? 8 : 16; }
  /// Appends a record and wakes the readers, from `core` if that is known. False when the file is closed.
  bool push(const QueuedEvent& e, const cpu::Core* core = nullptr);
  /// Takes back the unread records of an object that goes away.
  void drop(const void* object);
  bool readable() const { return !queue_.empty() || disassociated_; }
  std::size_t queued() const { return queue_.size(); }
  /// Records that have come so far.
  std::uint64_t records() const { return records_; }
  bool closed() const { return closed_; }
  /// read(2): blocks the calling thread while empty unless `nonblock`. Bytes read or -errno.
  long read(Waiter& self, void* data, std::size_t n, bool nonblock);
  /// Enlists a waiter for the next record; used by read() and poll().
  void enlist(Waiter& w) {
    // Waits that ended by a timeout or by another file left their entries behind.
    if (waiters_.size() >= 8)
      std::erase_if(waiters_,
                    [](const Enlisted& e) { return !e.waiter->waiting || e.generation != e.waiter->generation; });
    waiters_.push_back({&w, w.generation});
  }
  /// The last descriptor was closed: unread records are dropped, later ones refused.
  void close();
  /// The device is gone: readers get EIO.
  void disassociate();

 private:
  struct Enlisted {
    Waiter* waiter;
    std::uint64_t generation;
  };
  void wake(sim::trace::Cause cause, const cpu::Core* core);

  sim::Context& context_;
  const KernelConfig& config_;
  const std::int32_t host_;
  Kind kind_;
  sim::trace::Source trace_;
  sim::Ring<QueuedEvent> queue_;
  std::vector<Enlisted> waiters_;
  std::uint64_t records_ = 0;
  bool closed_ = false, disassociated_ = false;
};

}  // namespace kernel
