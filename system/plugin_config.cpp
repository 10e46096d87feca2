// SPDX-License-Identifier: Apache-2.0
#include "system/plugin_config.h"

namespace sys {

std::filesystem::path plugin_path(const PluginConfig& c) {
  const sim::Origin& o = c.file.origin;
  const bool in_file = o.source != nullptr && o.line != 0;
  return ((in_file ? std::filesystem::path(*o.source).parent_path() : std::filesystem::path()) / c.file.text)
      .lexically_normal();
}

}  // namespace sys
