// SPDX-License-Identifier: Apache-2.0
// pcapng writer (draft-ietf-opsawg-pcapng): one section, one interface per end of a link, nanosecond time stamps. A frame is
// recorded when it is handed to its link, with the time of its first bit, which may lie ahead. No later record is about a time
// before the present, so everything up to it can leave in order of time and only frames that wait for the wire are held back.
#include "sim/trace/pcapng_sink.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "sim/trace/file_writer.h"

namespace sim::trace {
namespace {

constexpr std::uint32_t kSectionHeader = 0x0A0D0D0A, kInterfaceDescription = 1, kEnhancedPacket = 6,
                        kByteOrder = 0x1A2B3C4D;
constexpr std::uint16_t kLinkEthernet = 1;
constexpr std::uint16_t kEndOfOptions = 0, kComment = 1, kHardware = 2, kApplication = 4;  // comment: of any block
constexpr std::uint16_t kInterfaceName = 2, kInterfaceDescriptionText = 3, kTimeResolution = 9;
constexpr std::uint16_t kPacketFlags = 2, kPacketId = 5;
constexpr std::uint32_t kInbound = 1, kOutbound = 2;

// A block under construction; multi-byte values in the byte order of the machine, which the section header tells.
class Block {
 public:
  void begin(std::uint32_t type) {
    bytes_.clear();
    put(type);
    put(std::uint32_t{0});  // the length follows in end()
  }
  template <class T>
  void put(T v) {
    bytes_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void padded(std::string_view data) {
    bytes_.append(data);
    bytes_.append((4 - data.size() % 4) % 4, '\0');
  }
  void option(std::uint16_t code, std::string_view value) {
    put(code);
    put(static_cast<std::uint16_t>(value.size()));
    padded(value);
  }
  template <class T>
  void option_number(std::uint16_t code, T v) {
    option(code, {reinterpret_cast<const char*>(&v), sizeof v});
  }
  std::string_view end() {
    const auto length = static_cast<std::uint32_t>(bytes_.size() + 4);
    put(length);
    std::memcpy(bytes_.data() + 4, &length, sizeof length);
    return bytes_;
  }

 private:
  std::string bytes_;
};

class PcapngSink final : public Sink {
 public:
  PcapngSink(const std::filesystem::path& path, std::uint32_t snaplen, SizeAlarm alarm)
      : out_(path, std::move(alarm)), snaplen_(snaplen) {}
  ~PcapngSink() override {
    try {
      if (out_.is_open()) close({});
    } catch (const std::exception&) {
      // close() is where errors are reported; here the run has failed already.
    }
  }
  using Sink::on;

  void open(const RunInfo& info) override {
    block_.begin(kSectionHeader);
    block_.put(kByteOrder);
    block_.put(std::uint16_t{1});
    block_.put(std::uint16_t{0});
    block_.put(std::int64_t{-1});  // length of the section: not known
    block_.option(kComment, "scenario " + info.scenario + ", seed " + std::to_string(info.seed));
    block_.option(kHardware, "simulated");
    block_.option(kApplication, "rdmasim " + info.version);
    block_.option(kEndOfOptions, {});
    out_ << block_.end();
  }
  void on(const Track& t) override {
    if (t.id >= paths_.size()) paths_.resize(t.id + 1);
    paths_[t.id] = t.path;
  }
  void on(const PacketRecord& p) override {
    Held h{p.t,        order_++, interface_of(p.track, p.transmit),
           p.msg,      p.frame,  static_cast<std::uint32_t>(p.bytes.size()),
           p.transmit, {}};
    const std::size_t kept = snaplen_ == 0 ? p.bytes.size() : std::min<std::size_t>(p.bytes.size(), snaplen_);
    h.bytes.assign(reinterpret_cast<const char*>(p.bytes.data()), kept);
    held_.push_back(std::move(h));
    std::push_heap(held_.begin(), held_.end(), later);
    while (!held_.empty() && held_.front().t <= p.now) release();
  }
  void close(Picos) override {
    while (!held_.empty()) release();
    out_.close();
  }

 private:
  struct Held {
    Picos t;
    std::uint64_t order;
    std::uint32_t interface;
    MsgId msg;
    std::uint64_t frame;
    std::uint32_t length;
    bool transmit;
    std::string bytes;
  };
  static bool later(const Held& a, const Held& b) { return a.t != b.t ? a.t > b.t : a.order > b.order; }

  // Number of the interface of a track; describes it on its first use.
  std::uint32_t interface_of(std::uint32_t track, bool transmit) {
    const auto [it, fresh] = interfaces_.try_emplace(track, static_cast<std::uint32_t>(interfaces_.size()));
    if (!fresh) return it->second;
    block_.begin(kInterfaceDescription);
    block_.put(kLinkEthernet);
    block_.put(std::uint16_t{0});
    block_.put(snaplen_);
    block_.option(kInterfaceName, paths_.at(track));
    block_.option(kInterfaceDescriptionText,
                  transmit ? "frames as their first bit leaves" : "frames as their last bit arrives");
    block_.option_number(kTimeResolution, std::uint8_t{9});
    block_.option(kEndOfOptions, {});
    out_ << block_.end();
    return it->second;
  }

  void release() {
    std::pop_heap(held_.begin(), held_.end(), later);
    const Held h = std::move(held_.back());
    held_.pop_back();
    const auto ns = static_cast<std::uint64_t>((h.t.n + 500) / 1000);
    block_.begin(kEnhancedPacket);
    block_.put(h.interface);
    block_.put(static_cast<std::uint32_t>(ns >> 32));
    block_.put(static_cast<std::uint32_t>(ns));
    block_.put(static_cast<std::uint32_t>(h.bytes.size()));
    block_.put(h.length);
    block_.padded(h.bytes);
    if (h.msg != 0) block_.option(kComment, "msg=" + std::to_string(h.msg));
    block_.option_number(kPacketFlags, h.transmit ? kOutbound : kInbound);
    block_.option_number(kPacketId, h.frame);
    block_.option(kEndOfOptions, {});
    out_ << block_.end();
  }

  FileWriter out_;
  const std::uint32_t snaplen_;
  Block block_;
  std::vector<std::string> paths_;                     // of tracks
  std::map<std::uint32_t, std::uint32_t> interfaces_;  // by track
  std::vector<Held> held_;                             // heap, the earliest first
  std::uint64_t order_ = 0;
};

}  // namespace

std::unique_ptr<Sink> make_pcapng_sink(const std::filesystem::path& path, std::uint32_t snaplen, SizeAlarm alarm) {
  return std::make_unique<PcapngSink>(path, snaplen, std::move(alarm));
}

}  // namespace sim::trace
