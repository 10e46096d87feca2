// SPDX-License-Identifier: Apache-2.0
// The copy is a file in memory, which the dynamic loader takes for another object than the original. It stays loaded and open
// until the simulator ends: a thread that was killed may have left destructors and handlers in it, and the loader knows an
// object by its path, which is the descriptor's.
#include "system/plugin.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "verbs_frontend/libc/wrap.h"

namespace sys {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& why) {
  throw std::runtime_error(file.string() + ": cannot be run as a program: " + why);
}

int copy_of(const std::filesystem::path& file) {
  const int from = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) fail(file, std::strerror(errno));
  struct stat s {};
  const int to = memfd_create(file.filename().c_str(), MFD_CLOEXEC);
  bool ok = to >= 0 && fstat(from, &s) == 0 && S_ISREG(s.st_mode);
  for (off_t left = s.st_size; ok && left > 0;) {
    const ssize_t n = sendfile(to, from, nullptr, static_cast<std::size_t>(left));
    ok = n > 0;
    left -= n;
  }
  const int error = errno;
  close(from);
  if (ok) return to;
  if (to >= 0) close(to);
  fail(file, S_ISREG(s.st_mode) ? std::strerror(error) : "expected a shared object, and it is not a regular file");
}

// What the loader says, in terms of the user's program.
std::string explain(std::string error, const std::string& loaded_as, const std::filesystem::path& file) {
  for (const char* call : verbs::refused_calls())
    if (error.ends_with(std::string("undefined symbol: __wrap_") + call))
      return std::string("it calls ") + call + "(), and a simulated process has no such thing";
  if (const std::size_t at = error.find(loaded_as); at != std::string::npos)
    error.replace(at, loaded_as.size(), file.filename().string());
  return error;
}

}  // namespace

Plugin::Plugin(const std::filesystem::path& file) {
  const std::string path = "/proc/self/fd/" + std::to_string(copy_of(file));
  void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) fail(file, explain(dlerror(), path, file));
  void* const entry = dlsym(object, "main");
  if (entry == nullptr) fail(file, "it has no main()");
  static_assert(sizeof main_ == sizeof entry);
  std::memcpy(&main_, &entry, sizeof entry);
}

int Plugin::run(const std::string& name, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  try {
    return main_(static_cast<int>(words.size()), argv.data());
  } catch (const verbs::Exit& e) {
    return e.code;
  }
}

std::string plugin_flags() {
  std::error_code ignore;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignore);
  const std::filesystem::path installed = self.parent_path().parent_path() / "include/rdmasim";
  const std::string headers =
      std::filesystem::is_directory(installed, ignore) ? installed.string() : RDMASIM_SOURCE_DIR;
  std::string out = "-shared -fPIC -fexceptions -I" + headers;
  for (const auto calls : {verbs::wrapped_calls(), verbs::refused_calls()})
    for (const char* call : calls) out += std::string(" -Wl,--wrap=") + call;
  return out;
}

}  // namespace sys
