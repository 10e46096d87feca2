// SPDX-License-Identifier: Apache-2.0
// Any text as a scenario file, with what `--set` adds: mistakes are reported, never fatal, and a scenario that is accepted
// is the same when its effective configuration is read back.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "experiment/scenario.h"
#include "sim/check.h"

namespace {

/// A file without a name that holds `text`.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view text) : fd_(memfd_create("scenario", 0)) {
    SIM_CHECK(fd_ >= 0 && write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size()), "memfd");
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace

// Parts end at zero bytes: the file, then one --set after the other.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const MemoryFile file(rest.substr(0, rest.find('\0')));
  sys::Overrides overrides;
  while (const auto end = rest.find('\0') + 1) {
    rest.remove_prefix(end);
    overrides.sets.emplace_back(rest.substr(0, rest.find('\0')));
  }
  try {
    const experiment::Scenario s = experiment::load_scenario(file.path(), overrides);
    const std::string text = experiment::effective_config(s).compact();
    const MemoryFile effective(text);
    const std::string again = experiment::effective_config(experiment::load_scenario(effective.path(), {})).compact();
    SIM_CHECK(text == again, "the effective configuration is another scenario");
    (void)experiment::run_options(s);
  } catch (const sim::ConfigFailure& mistakes) {
    SIM_CHECK(*mistakes.what() != '\0', "refused without a reason");
  }
  return 0;
}
