// SPDX-License-Identifier: Apache-2.0
// The regular files of a host: names with an inode number and no content. Processes that open the same path share the
// inode, by which XRC domains are shared (S-XRC-1).
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <map>
#include <string>
#include <string_view>

namespace kernel {

class RegularFiles {
 public:
  /// Inode number (> 0) of the file, made if `flags` has O_CREAT. -ENOENT, -EEXIST (O_CREAT with O_EXCL), -EINVAL (no
  /// absolute path).
  long open(std::string_view path, int flags) {
    if (!path.starts_with('/')) return -EINVAL;
    const auto it = inodes_.find(path);
    if (it != inodes_.end()) return (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0 ? -EEXIST : it->second;
    if ((flags & O_CREAT) == 0) return -ENOENT;
    const long inode = static_cast<long>(inodes_.size()) + 1;
    return inodes_.emplace(path, inode).first->second;
  }

 private:
  std::map<std::string, long, std::less<>> inodes_;
};

}  // namespace kernel
