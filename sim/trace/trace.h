// SPDX-License-Identifier: Apache-2.0
// The trace model: declare-once points, tracks, records, sources and sinks. Models emit through a Source and never see a
// sink; a disabled category costs one mask test. Times are absolute picoseconds, ids are counters, so the same run gives
// the same bytes.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/journey.h"
#include "sim/units.h"

namespace sim {
struct Context;
}

namespace sim::trace {

/// Trace categories are the library folders.
enum class Category : std::uint8_t { sim, memory, cpu, pcie, iommu, fabric, hca, kernel, verbs, system };
inline constexpr std::size_t kCategories = 10;
std::string_view name_of(Category c);

enum class Kind : std::uint8_t {
  span,     ///< work with enqueue, start and end time
  instant,  ///< something that happens at one time
  level,    ///< a quantity over time (occupancy, credits)
  state,    ///< a named state over time (QP state); argument 0 names it in the track's state list
  packet,   ///< bytes on a wire
};

/// Whether a record tells of trouble.
enum class Mark : std::uint8_t {
  none,
  warning,  ///< costs time: a loss, a retry, a stall
  error,    ///< somebody's work failed
};

/// What the bytes of a point's spans are, if they have any. A TLP is its header and the beginning of its payload.
enum class Form : std::uint8_t { none, wqe, rwqe, cqe, eqe, tlp };
std::string_view name_of(Form f);

/// A trace point. Declared once as an inline constexpr object in <library>/trace_points.h; identity is its address.
/// `args` name the numbers that each emission carries, nullptr-terminated when fewer than four.
struct Point {
  const char* name;
  Category category;
  Kind kind;
  std::array<const char*, 4> args{};
  Mark mark = Mark::none;
  std::int8_t mark_if = -1;  ///< number of the argument that is not zero when the mark holds; -1: always
  Form form = Form::none;
  bool marked(const std::array<std::uint64_t, 4>& values) const {
    return mark != Mark::none && (mark_if < 0 || values[static_cast<std::size_t>(mark_if)] != 0);
  }
};

/// Why something happens: the message it serves and the span that caused it (0 = unknown). Rides on TLPs and packets.
struct Cause {
  MsgId msg = 0;
  std::uint64_t parent = 0;
  bool critical = true;  ///< on the message's critical path: whoever finishes this may mark the journey
  bool event = false;    ///< on the way of the event that announces the message: the read of the event marks
};

enum class TrackKind : std::uint8_t { exclusive, pipelined, counter, state, instant };

/// A lane of the viewer: one resource of one host ("host0.hca.dma"). host is -1 for the fabric.
struct Track {
  std::uint32_t id;
  std::int32_t host;
  std::string path;
  TrackKind kind;
  std::vector<std::string> states;  ///< names of state values, for TrackKind::state
};

struct Span {
  const Point* point;
  std::uint32_t track;
  std::uint64_t id, parent;
  MsgId msg;
  Picos enqueued, start, end;
  std::array<std::uint64_t, 4> args;
};
struct Instant {
  const Point* point;
  std::uint32_t track;
  MsgId msg;
  std::uint64_t parent;
  Picos t;
  std::array<std::uint64_t, 4> args;
};
struct Level {
  const Point* point;
  std::uint32_t track;
  Picos t;
  std::int64_t value;
};
struct State {
  const Point* point;
  std::uint32_t track;
  Picos t;
  std::uint32_t value;
};
struct PacketRecord {
  const Point* point;
  std::uint32_t track;
  MsgId msg;
  Picos t;                           ///< first bit at the sender's port, last bit at the receiver's
  Picos now;                         ///< when it is recorded: no later record is about an earlier time
  bool transmit;                     ///< at the sender's port, else at the receiver's
  std::uint64_t frame;               ///< the same at both ports
  std::span<const std::byte> bytes;  ///< whole frame from the Ethernet header on; valid during the call
};

/// The bytes that a span has read, written or carried.
struct BytesRecord {
  std::uint32_t track;
  std::uint64_t span;
  MsgId msg;
  Picos t;
  std::span<const std::byte> bytes;  ///< valid during the call
};

/// What a sink learns before the first record.
struct RunInfo {
  std::string scenario, version;
  std::uint64_t seed = 0;
  std::vector<std::string> hosts;
  std::string config_json;  ///< effective configuration
};

/// Consumer of records. Records come in emission order; a span may carry future times, so a sink that needs time order
/// sorts. Tracks may be declared at any time before their first use.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void open(const RunInfo&) {}
  virtual void on(const Track&) {}
  virtual void on(const Span&) {}
  virtual void on(const Instant&) {}
  virtual void on(const Level&) {}
  virtual void on(const State&) {}
  virtual void on(const PacketRecord&) {}
  virtual void on(const BytesRecord&) {}
  virtual void on(const Journey&) {}
  /// End of run at simulated time `end`. Throws std::runtime_error if the output could not be written completely.
  virtual void close(Picos end) = 0;
};

/// Fans records out to the sinks. Without a sink every category is off.
class Tracer {
 public:
  bool on(Category c) const {
#ifdef RDMASIM_NO_TRACE
    (void)c;
    return false;
#else
    return (mask_ >> static_cast<unsigned>(c) & 1) != 0;
#endif
  }
  /// Any category on.
  bool active() const { return mask_ != 0; }
  void add_sink(std::unique_ptr<Sink> sink) { sinks_.push_back(std::move(sink)); }
  /// Enables recording. `categories` is a bit mask over Category; all by default.
  void open(const RunInfo& info, std::uint32_t categories = ~0U);
  void close(Picos end);

  /// Number of the track; that of an earlier one of this path and kind, if there is one.
  std::uint32_t declare_track(std::int32_t host, std::string path, TrackKind kind,
                              std::vector<std::string> states = {});
  std::uint64_t next_span_id() { return next_span_++; }
  template <class R>
  void emit(const R& r) {
    for (auto& s : sinks_) s->on(r);
  }

 private:
  std::uint32_t mask_ = 0;
  std::uint64_t next_span_ = 1;
  std::vector<Track> tracks_;
  std::map<std::pair<std::string, TrackKind>, std::uint32_t> by_path_;
  std::vector<std::unique_ptr<Sink>> sinks_;
};

/// A model's handle on its track.
class Source {
 public:
  Source(Context& context, std::int32_t host, std::string path, TrackKind kind = TrackKind::pipelined,
         std::vector<std::string> states = {});

  bool on(const Point& p) const { return tracer_->on(p.category); }
  /// Id for a span whose effects are recorded before it, as Cause::parent of those; 0 when the category is off.
  std::uint64_t begin_span(const Point& p) { return tracer_->on(p.category) ? tracer_->next_span_id() : 0; }
  /// Records the span that begin_span() has given `id`; nothing for 0.
  template <std::convertible_to<std::uint64_t>... A>
  void end_span(std::uint64_t id, const Point& p, Cause why, Picos enqueued, Picos start, Picos end, A... a) {
    static_assert(sizeof...(A) <= 4);
    if (id == 0) [[likely]]
      return;
    tracer_->emit(Span{&p, track_, id, why.parent, why.msg, enqueued, start, end, {static_cast<std::uint64_t>(a)...}});
  }
  /// Records a span and returns its id for use as a parent, 0 when the category is off.
  template <std::convertible_to<std::uint64_t>... A>
  std::uint64_t span(const Point& p, Cause why, Picos enqueued, Picos start, Picos end, A... a) {
    static_assert(sizeof...(A) <= 4);
    if (!tracer_->on(p.category)) [[likely]]
      return 0;
    const std::uint64_t id = tracer_->next_span_id();
    tracer_->emit(Span{&p, track_, id, why.parent, why.msg, enqueued, start, end, {static_cast<std::uint64_t>(a)...}});
    return id;
  }
  template <std::convertible_to<std::uint64_t>... A>
  void instant(const Point& p, Cause why, Picos t, A... a) {
    static_assert(sizeof...(A) <= 4);
    if (!tracer_->on(p.category)) [[likely]]
      return;
    tracer_->emit(Instant{&p, track_, why.msg, why.parent, t, {static_cast<std::uint64_t>(a)...}});
  }
  void level(const Point& p, Picos t, std::int64_t value) {
    if (!tracer_->on(p.category)) [[likely]]
      return;
    tracer_->emit(Level{&p, track_, t, value});
  }
  void state(const Point& p, Picos t, std::uint32_t value) {
    if (!tracer_->on(p.category)) [[likely]]
      return;
    tracer_->emit(State{&p, track_, t, value});
  }
  void packet(const Point& p, MsgId msg, Picos t, Picos now, bool transmit, std::uint64_t frame,
              std::span<const std::byte> bytes) {
    if (!tracer_->on(p.category)) [[likely]]
      return;
    tracer_->emit(PacketRecord{&p, track_, msg, t, now, transmit, frame, bytes});
  }
  /// Bytes of the span that this source has just recorded; nothing if it was not (0).
  void bytes(std::uint64_t span, MsgId msg, Picos t, std::span<const std::byte> data) {
    if (span != 0) tracer_->emit(BytesRecord{track_, span, msg, t, data});
  }
  /// Number of the track, unique in the simulation.
  std::uint32_t track() const { return track_; }

 private:
  Tracer* tracer_;
  std::uint32_t track_;
};

}  // namespace sim::trace
