// SPDX-License-Identifier: Apache-2.0
// Configuration of the RC transport: what the specification leaves open and where devices differ.
#pragma once

#include "sim/config.h"
#include "sim/units.h"

namespace hca {

struct TransportConfig {
  sim::Picos atomic_execute{20'000};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("atomic_execute", c.atomic_execute, "from an atomic's operand being read to its result being written",
      sim::assumed("no published figure"));
  }
};

}  // namespace hca
