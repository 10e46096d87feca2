// SPDX-License-Identifier: Apache-2.0
// Buffered output of a trace file: numbers and JSON strings straight into the buffer, errors with the path.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace sim::trace {

/// Tells once, while it is written, that a file has grown larger than what opens it takes well.
struct SizeAlarm {
  std::uint64_t bytes = 0;  ///< unpacked; 0 = none
  std::function<void()> passed;
};

/// Creates or truncates a file and writes to it through one fixed buffer, compressed by gzip if the path ends in ".gz". Every
/// failure throws std::runtime_error naming the path; after that nothing more is written.
class FileWriter {
 public:
  explicit FileWriter(const std::filesystem::path& path, SizeAlarm alarm = {});
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  FileWriter& operator<<(std::string_view text) {
    if (text.size() > kCapacity - used_) [[unlikely]]
      return long_text(text);
    text.copy(buffer_.get() + used_, text.size());
    used_ += text.size();
    return *this;
  }
  FileWriter& operator<<(char c) {
    room(1);
    buffer_[used_++] = c;
    return *this;
  }
  template <std::integral T>
  requires(!std::same_as<T, char> && !std::same_as<T, bool>) FileWriter& operator<<(T v) {
    room(24);
    char* const at = buffer_.get() + used_;
    used_ += static_cast<std::size_t>(std::to_chars(at, at + 24, v).ptr - at);
    return *this;
  }
  /// A JSON string, quoted; control characters are escaped and bytes from 0x80 on pass as they are.
  FileWriter& quoted(std::string_view text);
  /// Two hexadecimal digits for each byte.
  FileWriter& hex(std::span<const std::byte> bytes);
  /// A JSON document without the white space between its tokens; `null` for an empty text.
  FileWriter& compact(std::string_view json);

  /// Writes out the rest and closes. Must be called for the output to be known complete.
  void close();
  /// False after close() and after an error.
  bool is_open() const { return fd_ >= 0; }

 private:
  static constexpr std::size_t kCapacity = 1 << 18;
  void room(std::size_t n) {
    if (kCapacity - used_ < n) [[unlikely]]
      flush();
  }
  FileWriter& long_text(std::string_view text);
  void flush();
  void compress(bool last);
  void write(const char* data, std::size_t n);
  [[noreturn]] void fail(const char* what);

  std::filesystem::path path_;
  SizeAlarm alarm_;
  std::uint64_t flushed_ = 0;
  int fd_ = -1;
  std::size_t used_ = 0;
  std::unique_ptr<char[]> buffer_;
  struct Gzip;
  std::unique_ptr<Gzip> gzip_;  ///< null: plain
};

}  // namespace sim::trace
