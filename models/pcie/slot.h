// SPDX-License-Identifier: Apache-2.0
// A slot with its device side: both directions of the link and the endpoint, bound to the root complex.
#pragma once

#include <cstdint>
#include <string>
#include <systemc>

#include "pcie/endpoint.h"
#include "pcie/link.h"
#include "pcie/root_complex.h"

namespace pcie {

/// Bind `endpoint.function` to the device and the device's port to `endpoint`.
struct Slot final : sc_core::sc_module {
  Link up, down;
  Endpoint endpoint;

  /// `path` is that of the host's PCIe, e.g. "host0.pcie". The config must have passed its check().
  Slot(sc_core::sc_module_name name, sim::Context& context, const PcieConfig& config, const BarLayout& layout,
       RootComplex& root_complex, std::int32_t host, const std::string& path)
      : sc_module(name),
        up("up", context, config.link, config.root_port_credits, config.max_payload_size, Direction::up, host, path),
        down("down", context, config.link, config.endpoint_credits, config.max_payload_size, Direction::down, host, path),
        endpoint("endpoint", context, config, layout, host, path) {
    root_complex.connect(config, layout.bar0, layout.size);
    root_complex.down.bind(down);
    down.out.bind(endpoint);
    endpoint.up.bind(up);
    up.out.bind(root_complex);
  }
};

}  // namespace pcie
