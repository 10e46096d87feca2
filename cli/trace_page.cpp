// SPDX-License-Identifier: Apache-2.0
// A trace goes from its file through gzip, if it is not packed yet, and base64 into the page, piece by piece.
#include "cli/trace_page.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <span>
#include <sstream>
#include <string_view>

#include "cli/options.h"
#include "sim/trace/file_writer.h"

namespace cli {
namespace fs = std::filesystem;
namespace {

using Bytes = std::span<const unsigned char>;
constexpr std::size_t kPiece = 1 << 16;
constexpr std::string_view kPlace = "<!--rdmasim:trace-->";

UsageError unreadable(const fs::path& p) {
  return UsageError(p.string() + ": cannot be read: " + std::strerror(errno));
}

/// A file that is read from front to back.
class Input {
 public:
  explicit Input(const fs::path& p) : path_(p), file_(std::fopen(p.c_str(), "rb")) {
    if (file_ == nullptr) throw unreadable(p);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  ~Input() { std::fclose(file_); }
  /// The next bytes, none at the end.
  Bytes next() {
    const std::size_t n = std::fread(piece_.data(), 1, piece_.size(), file_);
    if (n == 0 && std::ferror(file_) != 0) throw unreadable(path_);
    return {piece_.data(), n};
  }

 private:
  const fs::path path_;
  std::FILE* const file_;
  std::array<unsigned char, kPiece> piece_;
};

/// Standard base64 of a stream (RFC 4648, section 4).
class Base64 {
 public:
  Base64(sim::trace::FileWriter& out, std::uint64_t most) : out_(out), most_(most) {}
  /// False when the text gets longer than it may.
  [[nodiscard]] bool put(Bytes bytes) {
    for (const unsigned char b : bytes) {
      group_ = group_ << 8 | b;
      if (++held_ == 3) flush();
    }
    return length_ <= most_;
  }
  [[nodiscard]] bool finish() {
    if (held_ != 0) flush();
    return length_ <= most_;
  }

 private:
  void flush() {
    constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::uint32_t bits = group_ << 8 * (3 - held_);
    char text[4] = {'=', '=', '=', '='};
    for (unsigned i = 0; i <= held_; ++i) text[i] = kDigits[bits >> (18 - 6 * i) & 63];
    out_ << std::string_view(text, 4);
    length_ += 4;
    group_ = held_ = 0;
  }
  sim::trace::FileWriter& out_;
  const std::uint64_t most_;
  std::uint64_t length_ = 0;
  std::uint32_t group_ = 0;
  unsigned held_ = 0;  // bytes in the group
};

/// Packs a stream as gzip. The same bytes give the same bytes: its header has no time and no name.
class Gzip {
 public:
  Gzip() {
    constexpr int kGzipHeader = 16 + 15, kMemory = 8;
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipHeader, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() { deflateEnd(&stream_); }
  /// Hands what `bytes` give to `to`; `last` ends the stream.
  [[nodiscard]] bool put(Bytes bytes, bool last, Base64& to) {
    stream_.next_in = const_cast<Bytef*>(bytes.data());
    stream_.avail_in = static_cast<uInt>(bytes.size());
    bool fits = true;
    do {
      stream_.next_out = out_.data();
      stream_.avail_out = static_cast<uInt>(out_.size());
      deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);
      fits = to.put(Bytes(out_).first(out_.size() - stream_.avail_out)) && fits;
    } while (stream_.avail_out == 0);
    return fits;
  }

 private:
  z_stream stream_{};
  std::array<unsigned char, kPiece> out_;
};

/// The file under another name until it is complete.
class PartFile {
 public:
  explicit PartFile(const fs::path& final) : final_(final), part_(final.string() + ".part") {}
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile() {
    std::error_code ignore;
    fs::remove(part_, ignore);
  }
  const fs::path& path() const { return part_; }
  void complete() {
    std::error_code error;
    fs::rename(part_, final_, error);
    if (error) throw UsageError(final_.string() + ": cannot be written: " + error.message());
  }

 private:
  const fs::path final_, part_;
};

std::string read_page(const fs::path& page) {
  std::ifstream in(page, std::ios::binary);
  std::ostringstream text;
  if (!(text << in.rdbuf())) throw unreadable(page);
  std::string out = text.str();
  const std::size_t at = out.find(kPlace);
  if (at == std::string::npos || out.find(kPlace, at + 1) != std::string::npos)
    throw UsageError(page.string() + ": is not the page of the viewer: it does not hold " + std::string(kPlace) +
                     " once");
  return out;
}

/// Text for an attribute in double quotes.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else if (c == '<') out += "&lt;";
    else out += c;
  }
  return out;
}

void embed(sim::trace::FileWriter& out, const TraceFile& trace, std::string_view id, std::uint64_t most) {
  out << "<script type=\"application/octet-stream;base64\" id=\"" << id << "\" data-name=\"" << escaped(trace.name)
      << "\">";
  Input in(trace.path);
  Base64 base64(out, most);
  bool fits = true;
  if (trace.gzip) {
    for (Bytes piece = in.next(); fits && !piece.empty(); piece = in.next()) fits = base64.put(piece);
  } else {
    Gzip gzip;
    for (Bytes piece = in.next(); fits && !piece.empty(); piece = in.next()) fits = gzip.put(piece, false, base64);
    fits = fits && gzip.put({}, true, base64);
  }
  fits = fits && base64.finish();
  if (!fits)
    throw UsageError(
        trace.path.string() + ": is too large for a page: packed and in base64 it is longer than the " +
        std::to_string(most) +
        " characters that a browser holds in one piece. Record less of the run (--trace-last, --trace-window, "
        "--trace-qpn, --trace-msg, --trace-hosts, --trace-categories, --trace-bytes 0), or open the viewer's page "
        "and drop the file on it");
  out << "</script>";
}

/// Printable and short.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 40)) out += c >= ' ' && c <= '~' ? c : '?';
  return "\"" + out + "\"";
}

void expect_trace(const fs::path& p, std::string_view head) {
  constexpr std::string_view kNative = R"({"format":"rdmasim-cols/1")";
  constexpr std::string_view kChrome = R"({"displayTimeUnit":"ns","otherData":{"format":"rdmasim-chrome/1")";
  if (head.starts_with(kNative) || head.starts_with(kChrome)) return;
  const std::string what = head.empty() ? "it is empty" : "it begins with " + shown(head);
  throw UsageError(p.string() + ": is no trace that the viewer shows: " + what +
                   "; expected a file that `rdmasim run --trace json` or `--trace perfetto` wrote, plain or .gz");
}

/// Looks through the file: what it is, how large, and whether it is whole if it is packed.
void inspect(TraceFile& t) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(t.path.c_str(), "rb"), &gzclose);
  if (!file) throw unreadable(t.path);
  std::array<char, kPiece> piece;
  const auto read = [&] { return gzread(file.get(), piece.data(), static_cast<unsigned>(piece.size())); };
  int n = read();
  int error = Z_OK;
  gzerror(file.get(), &error);
  if (error == Z_ERRNO) throw unreadable(t.path);
  if (n <= 0 && error != Z_OK) throw UsageError(t.path.string() + ": is damaged: nothing of it can be unpacked");
  expect_trace(t.path, {piece.data(), static_cast<std::size_t>(std::max(n, 0))});
  t.gzip = gzdirect(file.get()) == 0;
  if (!t.gzip) {
    t.unpacked = fs::file_size(t.path);
    return;
  }
  for (; n > 0; n = read()) t.unpacked += static_cast<unsigned>(n);
  gzerror(file.get(), &error);
  t.damaged = n < 0 || error != Z_OK;
}

fs::path trace_in(const fs::path& directory) {
  std::string looked_for;
  std::error_code ignore;
  for (const char* name : {"trace.jsonl", "trace.perfetto.json"}) {
    const fs::path plain = directory / name, packed = directory / (std::string(name) + ".gz");
    const bool has_plain = fs::exists(plain, ignore), has_packed = fs::exists(packed, ignore);
    if (has_plain && has_packed)
      return fs::last_write_time(plain, ignore) < fs::last_write_time(packed, ignore) ? packed : plain;
    if (has_plain) return plain;
    if (has_packed) return packed;
    looked_for += (looked_for.empty() ? "" : ", ") + std::string(name) + ", " + name + ".gz";
  }
  throw UsageError(directory.string() + ": holds no trace for the viewer (looked for " + looked_for +
                   "); `rdmasim run FILE --trace json --out " + directory.string() + "` writes one");
}

}  // namespace

TraceFile find_trace(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found)
    throw UsageError(path.string() + ": there is no such file or directory");
  if (error) throw UsageError(path.string() + ": cannot be read: " + error.message());
  TraceFile out;
  out.path = fs::is_directory(status) ? trace_in(path) : path;
  if (!fs::is_regular_file(out.path, error)) throw UsageError(out.path.string() + ": is not a file");
  inspect(out);
  // Two runs are told apart by their directories; where those lie is nobody's business.
  const fs::path whole = fs::absolute(out.path).lexically_normal();
  out.name = (whole.parent_path().filename() / whole.filename()).string();
  return out;
}

fs::path find_viewer_page() {
  std::error_code ignore;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignore);
  std::vector<fs::path> places;
  if (!self.empty()) places.push_back(self.parent_path().parent_path() / "share/rdmasim/trace_viewer.html");
  places.emplace_back(RDMASIM_INSTALLED_PAGE);
  places.emplace_back(RDMASIM_SOURCE_PAGE);
  for (const fs::path& p : places)
    if (fs::is_regular_file(p, ignore)) return p;
  throw UsageError("the viewer's page is not built: there is no " + std::string(RDMASIM_SOURCE_PAGE) +
                   ". `./dev viewer` in the source tree builds it (with Node.js); --page FILE names another one");
}

void write_trace_page(const fs::path& page, const std::vector<TraceFile>& traces, const fs::path& out,
                      std::uint64_t most) {
  const std::string text = read_page(page);
  const std::size_t at = text.find(kPlace);
  PartFile part(out);
  sim::trace::FileWriter file(part.path());
  file << std::string_view(text).substr(0, at);
  for (std::size_t i = 0; i < traces.size(); ++i)
    embed(file, traces[i], i == 0 ? "rdmasim-trace" : "rdmasim-trace-b", most);
  file << std::string_view(text).substr(at + kPlace.size());
  file.close();
  part.complete();
}

}  // namespace cli
