// SPDX-License-Identifier: Apache-2.0
// Reading the one-line text files of sysfs.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernel/syscalls.h"

namespace verbs {

/// The file's first line without its newline.
inline std::optional<std::string> sysfs_line(kernel::Syscalls& k, std::string_view path) {
  std::optional<std::string> text = k.sysfs_read(path);
  if (text) text->resize(std::min(text->size(), text->find('\n')));
  return text;
}

/// Parses "0002:c903:0000:0010": exactly groups.size() hexadecimal groups.
inline bool parse_groups(std::string_view text, std::span<std::uint16_t> groups) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string_view part = text.substr(0, text.find(':'));
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), groups[i], 16);
    if (error != std::errc{} || end != part.data() + part.size()) return false;
    const bool last = part.size() == text.size();
    if (last != (i + 1 == groups.size())) return false;
    text.remove_prefix(last ? part.size() : part.size() + 1);
  }
  return true;
}

}  // namespace verbs
