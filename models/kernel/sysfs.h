// SPDX-License-Identifier: Apache-2.0
// The part of sysfs that verbs libraries read: /sys/class/infiniband and /sys/class/infiniband_verbs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernel {

class Kernel;

/// Content of every attribute by its path below "/sys/", as it stands now.
std::map<std::string, std::string> sysfs_attributes(const Kernel& kernel);
/// An attribute's content with its newline; empty if there is none.
std::optional<std::string> sysfs_read(const Kernel& kernel, std::string_view path);
/// Names in a directory, sorted; empty if there is none.
std::vector<std::string> sysfs_list(const Kernel& kernel, std::string_view dir);

}  // namespace kernel
