// SPDX-License-Identifier: Apache-2.0
// Numbers on the command line.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

#include "cli/options.h"

namespace cli {

/// The value of an option that takes a whole number from `least` to `most`. Throws UsageError.
inline std::uint64_t number_of(const Options& o, const char* name, std::uint64_t least, std::uint64_t most) {
  const auto& text = o.get<std::string>(name);
  std::uint64_t n = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), n);
  if (r.ec != std::errc{} || r.ptr != text.data() + text.size() || n < least || n > most)
    throw UsageError(std::string("--") + name + ": expected an integer from " + std::to_string(least) + " to " +
                     std::to_string(most) + ", got \"" + text + "\"");
  return n;
}

}  // namespace cli
