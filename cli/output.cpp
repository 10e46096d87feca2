// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "cli/options.h"

namespace cli {
namespace fs = std::filesystem;

void prepare_output(const fs::path& directory) {
  std::error_code error;
  if (fs::exists(directory, error) && !fs::is_directory(directory, error))
    throw UsageError("--out " + directory.string() + ": is not a directory");
  fs::create_directories(directory, error);
  if (error) throw UsageError("--out " + directory.string() + ": cannot be created: " + error.message());
  const fs::path probe = directory / ".rdmasim-probe";
  std::FILE* f = std::fopen(probe.c_str(), "wb");
  if (f == nullptr) throw UsageError("--out " + directory.string() + ": cannot be written: " + std::strerror(errno));
  std::fclose(f);
  fs::remove(probe, error);
}

void write_file(const fs::path& file, const std::string& text) {
  fs::path part = file;
  part += ".part";
  const auto fail = [&] { return UsageError(file.string() + ": cannot be written: " + std::strerror(errno)); };
  std::FILE* f = std::fopen(part.c_str(), "wb");
  if (f == nullptr) throw fail();
  const bool written = std::fwrite(text.data(), 1, text.size(), f) == text.size();
  if (std::fclose(f) != 0 || !written || std::rename(part.c_str(), file.c_str()) != 0) {
    const UsageError error = fail();
    std::remove(part.c_str());
    throw error;
  }
}

}  // namespace cli
