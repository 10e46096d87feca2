// SPDX-License-Identifier: Apache-2.0
// Configuration of one PCIe slot: the link in both directions, buffers of both receivers, and the function's identity.
#pragma once

#include <cstdint>

#include "sim/config.h"
#include "sim/units.h"

namespace pcie {

/// Rate, framing and latency of a link; the same in both directions.
struct LinkConfig {
  std::uint32_t generation = 3;
  std::uint32_t width = 16;
  bool ecrc = false;
  sim::Picos latency{80'000};
  sim::Picos credit_processing{20'000};
  sim::Picos update_fc_latency{80'000};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("generation", c.generation, "PCI Express generation: signalling rate and encoding",
      sim::assumed("ConnectX-5 class adapter"), sim::Range{1, 6});
    v("width", c.width, "number of lanes: 1, 2, 4, 8 or 16", sim::assumed("ConnectX-5 class adapter"),
      sim::Range{1, 16});
    v("ecrc", c.ecrc, "each TLP carries a 4-byte end-to-end CRC",
      sim::spec("PCI Express Base Specification, TLP digest; off by default"));
    v("latency", c.latency, "last byte sent until the receiver has the TLP: both PHYs, deskew, LCRC check, propagation",
      sim::assumed("one way of 125 to 140 ns in all, less root complex and serialisation"));
    v("credit_processing", c.credit_processing, "receiver has consumed a TLP until it sends UpdateFC",
      sim::assumed("a few internal clocks"));
    v("update_fc_latency", c.update_fc_latency, "UpdateFC sent until the transmitter may use the credits",
      sim::assumed("same as latency"));
  }
  template <class F>
  void check(F&& fail) const {
    if (width == 0 || (width & (width - 1)) != 0) fail("width", "must be 1, 2, 4, 8 or 16");
  }
};

/// Receive buffer that one end of the link advertises. 0 = infinite. Non-posted TLPs carry no data here, so their data
/// credits never bind.
struct CreditConfig {
  std::uint32_t posted_headers = 64;
  std::uint32_t posted_data = 1024;
  std::uint32_t non_posted_headers = 64;
  std::uint32_t completion_headers = 0;
  std::uint32_t completion_data = 0;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("posted_headers", c.posted_headers, "posted TLPs buffered (0 = infinite)", sim::assumed("server root port"),
      sim::Range{0, 2047});
    v("posted_data", c.posted_data, "posted payload buffered, in units of 16 bytes (0 = infinite)",
      sim::assumed("server root port"), sim::Range{0, 32767});
    v("non_posted_headers", c.non_posted_headers, "read requests buffered (0 = infinite)",
      sim::assumed("server root port"), sim::Range{0, 2047});
    v("completion_headers", c.completion_headers, "completions buffered (0 = infinite)",
      sim::spec("PCI Express Base Specification: root complexes and endpoints advertise infinite completion credits"),
      sim::Range{0, 2047});
    v("completion_data", c.completion_data, "completion payload buffered, in units of 16 bytes (0 = infinite)",
      sim::spec("PCI Express Base Specification: as completion_headers"), sim::Range{0, 32767});
  }
};

/// One slot with its device. `link` describes both directions.
struct PcieConfig {
  LinkConfig link;
  CreditConfig root_port_credits;
  CreditConfig endpoint_credits;
  std::uint32_t max_payload_size = 256;
  std::uint32_t max_read_request_size = 512;
  std::uint32_t read_completion_boundary = 64;
  std::uint16_t bdf = 0x3b00;
  sim::Picos register_read_latency{50'000};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("link", c.link, "the link to the slot", sim::assumed("ConnectX-5 class adapter"));
    v("root_port_credits", c.root_port_credits, "buffers of the root port, which limit the device",
      sim::assumed("server root port"));
    v("endpoint_credits", c.endpoint_credits, "buffers of the device, which limit CPU stores to it",
      sim::assumed("same as the root port"));
    v("max_payload_size", c.max_payload_size, "MPS in bytes: 128, 256, 512, 1024, 2048 or 4096",
      sim::measured("usual on Xeon servers"), sim::Range{128, 4096});
    v("max_read_request_size", c.max_read_request_size, "MRRS in bytes: 128, 256, 512, 1024, 2048 or 4096",
      sim::spec("PCI Express Base Specification, default"), sim::Range{128, 4096});
    v("read_completion_boundary", c.read_completion_boundary, "RCB in bytes: 64 or 128",
      sim::spec("PCI Express Base Specification, root complex default"), sim::Range{64, 128});
    v("bdf", c.bdf, "requester id of the device: bus << 8 | device << 3 | function", sim::assumed("3b:00.0"));
    v("register_read_latency", c.register_read_latency, "the device has a register read until its completion leaves",
      sim::assumed("a register bus at 200 to 400 MHz"));
  }
  template <class F>
  void check(F&& fail) const {
    const auto size = [](std::uint32_t n) { return n >= 128 && n <= 4096 && (n & (n - 1)) == 0; };
    if (!size(max_payload_size)) fail("max_payload_size", "must be 128, 256, 512, 1024, 2048 or 4096");
    if (!size(max_read_request_size)) fail("max_read_request_size", "must be 128, 256, 512, 1024, 2048 or 4096");
    if (read_completion_boundary != 64 && read_completion_boundary != 128)
      fail("read_completion_boundary", "must be 64 or 128");
    if (bdf == 0) fail("bdf", "0 is the root complex");
    // A dword more than the payload: an unaligned start drags one along.
    const auto holds = [&](std::uint32_t units) { return units == 0 || units >= max_payload_size / 16 + 1; };
    for (const CreditConfig* c : {&root_port_credits, &endpoint_credits}) {
      const char* name = c == &root_port_credits ? "root_port_credits" : "endpoint_credits";
      if (!holds(c->posted_data))
        fail(name, "posted_data must hold a payload of max_payload_size (MPS / 16 + 1 units)");
      if (!holds(c->completion_data))
        fail(name, "completion_data must hold a payload of max_payload_size (MPS / 16 + 1 units)");
    }
  }
};

/// Raw data rate of one direction after line encoding.
sim::BitRate raw_rate(const LinkConfig& link);
/// Symbol times after which an Ack and an UpdateFC are due (PCI Express Base Specification, AckNak latency limit).
std::uint32_t ack_limit(const LinkConfig& link, std::uint32_t max_payload_size);
/// What is left for TLPs after SKP ordered sets and one Ack and one UpdateFC DLLP of 8 bytes per ack_limit() symbols.
sim::BitRate tlp_rate(const LinkConfig& link, std::uint32_t max_payload_size);
/// Time that `n` bytes take on an idle link.
sim::Picos serialisation(const LinkConfig& link, std::uint32_t max_payload_size, sim::Bytes n);

}  // namespace pcie
