// SPDX-License-Identifier: Apache-2.0
// A string of a configuration that remembers where it was written. For names that refer to other parts of the document:
// whether they lead anywhere is known only when everything has been read, and the mistake is shown where the name stands.
#pragma once

#include <string>
#include <utility>

#include "sim/json.h"

namespace sim {

struct Located {
  Located() = default;
  Located(std::string t) : text(std::move(t)) {}
  Located(const char* t) : text(t) {}
  bool empty() const { return text.empty(); }

  std::string text;
  Origin origin;  ///< without a source when the value is a default
};

}  // namespace sim
