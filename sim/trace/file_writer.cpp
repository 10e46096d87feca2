// SPDX-License-Identifier: Apache-2.0
// POSIX file output behind one buffer. A full disk shows when the buffer is written out, at the latest in close().
#include "sim/trace/file_writer.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace sim::trace {

struct FileWriter::Gzip {
  Gzip() {
    constexpr int kGzipHeader = 16 + 15, kMemory = 8;
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipHeader, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() { deflateEnd(&stream); }
  z_stream stream{};
  std::array<char, 1 << 16> out;
};

FileWriter::FileWriter(const std::filesystem::path& path, SizeAlarm alarm)
    : path_(path), alarm_(std::move(alarm)), buffer_(std::make_unique_for_overwrite<char[]>(kCapacity)) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("cannot create");
  if (path.extension() == ".gz") gzip_ = std::make_unique<Gzip>();
}

FileWriter::~FileWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void FileWriter::fail(const char* what) {
  const int error = errno;
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  used_ = 0;
  throw std::runtime_error(std::string(what) + " trace file " + path_.string() + ": " + std::strerror(error));
}

void FileWriter::write(const char* data, std::size_t n) {
  for (std::size_t done = 0; done < n;) {
    if (fd_ < 0) break;
    const ssize_t written = ::write(fd_, data + done, n - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot write");
    done += static_cast<std::size_t>(written);
  }
}

void FileWriter::compress(bool last) {
  z_stream& z = gzip_->stream;
  z.next_in = reinterpret_cast<Bytef*>(buffer_.get());
  z.avail_in = static_cast<uInt>(used_);
  do {
    z.next_out = reinterpret_cast<Bytef*>(gzip_->out.data());
    z.avail_out = static_cast<uInt>(gzip_->out.size());
    deflate(&z, last ? Z_FINISH : Z_NO_FLUSH);
    write(gzip_->out.data(), gzip_->out.size() - z.avail_out);
  } while (z.avail_out == 0);
}

void FileWriter::flush() {
  if (gzip_) compress(false);
  else write(buffer_.get(), used_);
  flushed_ += std::exchange(used_, 0);
  if (alarm_.bytes != 0 && flushed_ > alarm_.bytes) {
    alarm_.bytes = 0;
    alarm_.passed();
  }
}

FileWriter& FileWriter::long_text(std::string_view text) {
  while (!text.empty()) {
    if (used_ == kCapacity) flush();
    const std::size_t n = std::min(text.size(), kCapacity - used_);
    text.copy(buffer_.get() + used_, n);
    used_ += n;
    text.remove_prefix(n);
  }
  return *this;
}

FileWriter& FileWriter::quoted(std::string_view text) {
  *this << '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      *this << '\\' << c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr char kHex[] = "0123456789abcdef";
      *this << "\\u00" << kHex[c >> 4] << kHex[c & 15];
    } else {
      *this << c;
    }
  }
  return *this << '"';
}

FileWriter& FileWriter::hex(std::span<const std::byte> bytes) {
  static constexpr auto kPairs = [] {
    constexpr char kDigits[] = "0123456789abcdef";
    std::array<std::array<char, 2>, 256> pairs{};
    for (std::size_t b = 0; b < pairs.size(); ++b) pairs[b] = {kDigits[b >> 4], kDigits[b & 15]};
    return pairs;
  }();
  for (std::size_t i = 0; i < bytes.size();) {
    room(2);
    const std::size_t n = std::min(bytes.size(), i + (kCapacity - used_) / 2);
    for (; i < n; ++i, used_ += 2)
      std::memcpy(buffer_.get() + used_, kPairs[std::to_integer<std::size_t>(bytes[i])].data(), 2);
  }
  return *this;
}

FileWriter& FileWriter::compact(std::string_view json) {
  if (json.empty()) return *this << "null";
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string && c == '\\' && i + 1 < json.size()) {
      *this << c << json[++i];
      continue;
    }
    if (c == '"') in_string = !in_string;
    if (in_string || (c != ' ' && c != '\n' && c != '\r' && c != '\t')) *this << c;
  }
  return *this;
}

void FileWriter::close() {
  if (fd_ < 0) return;
  flush();
  if (gzip_) compress(true);
  if (::close(std::exchange(fd_, -1)) != 0) fail("cannot write");
}

}  // namespace sim::trace
