// SPDX-License-Identifier: Apache-2.0
// Commands for people to repeat.
#pragma once

#include <string>

namespace experiment {

/// `word` as a POSIX shell reads it back.
inline std::string shell_word(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace experiment
