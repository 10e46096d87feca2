// SPDX-License-Identifier: Apache-2.0
// nlohmann/json parses; a scanner that walks the same text in lockstep supplies line and column of each key and value.
// The parser's SAX events and the scanner's tokens come in the same order, one for one, so nothing is parsed twice.
#include "sim/config_json.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace sim {
namespace {

/// Walks the text token by token and keeps line and column, both from 1.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = counted_ = 3;
  }

  /// Start of the next token, strings and numbers as well as braces and commas; npos at the end.
  std::size_t next_token() {
    skip_blank();
    if (at_ >= text_.size()) return std::string_view::npos;
    const std::size_t start = at_;
    const char c = text_[at_++];
    if (c == '"') {
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') at_ += text_[at_] == '\\' ? 2 : 1;
      at_ = std::min(at_ + 1, text_.size());
    } else if (!is_structure(c)) {
      while (at_ < text_.size() && !is_structure(text_[at_]) && !is_space(text_[at_]) && text_[at_] != '/' &&
             text_[at_] != '"')
        ++at_;
    }
    return start;
  }
  /// Start of the next token that is a key, a scalar or opens a list or object.
  std::size_t next_value() {
    for (;;) {
      const std::size_t t = next_token();
      if (t == std::string_view::npos || !is_separator(text_[t])) return t;
    }
  }
  /// End of the last token.
  std::size_t position() const { return at_; }

  /// Line and column of an offset that does not lie before one asked for earlier.
  void locate(std::size_t offset, Origin& out) {
    for (; counted_ < std::min(offset, text_.size()); ++counted_) {
      if (text_[counted_] == '\n') {
        ++line_;
        column_ = 1;
      } else if ((static_cast<unsigned char>(text_[counted_]) & 0xC0) != 0x80) {
        ++column_;
      }
    }
    out.line = line_;
    out.column = column_;
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  static bool is_separator(char c) { return c == ',' || c == ':' || c == '}' || c == ']'; }
  static bool is_structure(char c) { return is_separator(c) || c == '{' || c == '['; }
  void skip_blank() {
    while (at_ < text_.size()) {
      if (is_space(text_[at_])) {
        ++at_;
      } else if (text_.substr(at_).starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_).starts_with("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0, counted_ = 0;
  std::uint32_t line_ = 1, column_ = 1;
};

/// What nlohmann says about a syntax error, without its prefix and without the text that it has read.
std::string tidy(std::string what) {
  if (const auto p = what.find("syntax error"); p != std::string::npos) what.erase(0, p);
  else if (const auto q = what.find("] "); q != std::string::npos) what.erase(0, q + 2);
  if (const auto p = what.find("; last read: '"); p != std::string::npos) {
    const auto end = what.rfind('\'', what.rfind("; expected") > p ? what.rfind("; expected") : std::string::npos);
    what.erase(p, end == std::string::npos || end <= p ? std::string::npos : end - p + 1);
  }
  return what;
}

using Nlohmann = nlohmann::json;

class Builder {
 public:
  Builder(std::string_view text, Origin source, ConfigErrors& errors)
      : text_(text), scanner_(text), source_(std::move(source)), errors_(errors) {}

  Json take() { return std::move(root_); }
  bool ok() const { return ok_; }

  bool null() { return scalar(Json{}); }
  bool boolean(bool v) { return scalar(v); }
  bool number_integer(std::int64_t v) { return scalar(v); }
  bool number_unsigned(std::uint64_t v) { return scalar(v); }
  bool number_float(double v, const std::string&) { return scalar(v); }
  bool string(std::string& v) { return scalar(std::move(v)); }
  bool binary(Nlohmann::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_array() { return close(); }
  bool end_object() {
    keys_.pop_back();
    return close();
  }
  bool key(std::string& k) {
    key_ = std::move(k);
    key_origin_ = here();
    const auto [first, fresh] = keys_.back().emplace(key_, key_origin_.line);
    if (!fresh) {
      errors_.add(key_origin_, {},
                  "duplicate key \"" + key_ + "\" (first at line " + std::to_string(first->second) + ")");
      ok_ = false;
    }
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) {
    std::string message = tidy(e.what());
    Origin where = source_;
    const std::size_t offset = position > 0 ? position - 1 : 0;
    std::size_t start = text_.size();
    // A malformed literal or number is noticed at the character after it.
    const bool lexical = std::strstr(e.what(), "last read") != nullptr;
    while (scanner_.position() < offset || (scanner_.position() == offset && !(lexical && start < offset))) {
      const std::size_t t = scanner_.next_token();
      start = t == std::string_view::npos ? text_.size() : t;
      if (t == std::string_view::npos) break;
    }
    scanner_.locate(start, where);
    errors_.add(where, {}, "broken JSON: " + message);
    ok_ = false;
    return false;
  }

 private:
  Origin here() {
    Origin o = source_;
    scanner_.locate(scanner_.next_value(), o);
    return o;
  }
  Json* place(Json v, Origin origin) {
    v.origin = std::move(origin);
    if (stack_.empty()) {
      root_ = std::move(v);
      return &root_;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.items().push_back(std::move(v));
      return &parent.items().back();
    }
    parent.members().push_back({std::move(key_), std::move(v), key_origin_});
    return &parent.members().back().value;
  }
  bool scalar(Json v) {
    place(std::move(v), here());
    return true;
  }
  bool open(Json v) {
    Origin o = here();
    if (stack_.size() == kMaxConfigDepth) {
      errors_.add(o, {}, "nested more than " + std::to_string(kMaxConfigDepth) + " levels deep");
      return ok_ = false;
    }
    if (v.is_object()) keys_.emplace_back();
    stack_.push_back(place(std::move(v), std::move(o)));
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  std::string_view text_;
  Scanner scanner_;
  Origin source_;
  ConfigErrors& errors_;
  Json root_;
  std::vector<Json*> stack_;  // a container does not move while it is open
  std::vector<std::map<std::string, std::uint32_t>> keys_;
  std::string key_;
  Origin key_origin_;
  bool ok_ = true;
};

/// Offset of the first byte that is not UTF-8 (RFC 3629), npos if all is well.
std::size_t invalid_utf8(std::string_view s) {
  const auto byte = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0U; };
  for (std::size_t i = 0; i < s.size();) {
    const unsigned c = byte(i);
    if (c < 0x80) {
      ++i;
      continue;
    }
    const std::size_t n = c >= 0xC2 && c <= 0xDF ? 1 : (c & 0xF0) == 0xE0 ? 2 : c >= 0xF0 && c <= 0xF4 ? 3 : 0;
    if (n == 0) return i;
    unsigned low = 0x80, high = 0xBF;
    if (c == 0xE0) low = 0xA0;
    if (c == 0xED) high = 0x9F;
    if (c == 0xF0) low = 0x90;
    if (c == 0xF4) high = 0x8F;
    for (std::size_t k = 1; k <= n; ++k, low = 0x80, high = 0xBF)
      if (byte(i + k) < low || byte(i + k) > high) return i;
    i += n + 1;
  }
  return std::string_view::npos;
}

std::string hex_byte(char c) {
  char buffer[8];
  std::snprintf(buffer, sizeof buffer, "0x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
  return buffer;
}

}  // namespace

std::string ConfigError::text() const {
  std::string out = origin.text();
  if (!out.empty()) out += ": ";
  if (!path.empty()) out += path + ": ";
  return out + message;
}

std::string ConfigErrors::text() const {
  std::vector<const ConfigError*> order;
  for (const ConfigError& e : all_) order.push_back(&e);
  const auto name = [](const ConfigError* e) {
    return e->origin.source ? std::string_view(*e->origin.source) : std::string_view{};
  };
  std::ranges::stable_sort(order, [&](const ConfigError* a, const ConfigError* b) {
    return std::tuple(name(a), a->origin.line, a->origin.column) <
           std::tuple(name(b), b->origin.line, b->origin.column);
  });
  std::string out;
  std::set<std::pair<std::string, std::string>> told;
  for (const ConfigError* e : order)
    if (told.emplace(e->origin.text(), e->message).second) out += e->text() + "\n";
  return out;
}

std::optional<Json> parse_json(std::string_view text, const std::string& source, ConfigErrors& errors) {
  Origin origin;
  origin.source = std::make_shared<const std::string>(source);
  if (const std::size_t bad = invalid_utf8(text); bad != std::string_view::npos) {
    Scanner(text).locate(bad, origin);
    errors.add(origin, {}, "not UTF-8 text (byte " + hex_byte(text[bad]) + "); expected JSON in UTF-8");
    return std::nullopt;
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    errors.add(origin, {}, "is empty; expected a JSON object");
    return std::nullopt;
  }
  Builder builder(text, origin, errors);
  Nlohmann::sax_parse(text.begin(), text.end(), &builder, Nlohmann::input_format_t::json, true, true);
  if (!builder.ok()) return std::nullopt;
  return builder.take();
}

std::optional<std::string> read_text(const std::filesystem::path& file, ConfigErrors& errors) {
  Origin origin;
  origin.source = std::make_shared<const std::string>(file.string());
  const auto refuse = [&](std::string why) {
    errors.add(origin, {}, std::move(why));
    return std::nullopt;
  };
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return refuse(std::string("cannot be read: ") + std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return refuse("is a directory; expected a JSON file");
  const std::string limit = "; files up to " + std::to_string(kMaxConfigFile >> 20) + " MiB are read";
  if (S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) > kMaxConfigFile)
    return refuse("is " + std::to_string(info.st_size) + " bytes large" + limit);
  std::FILE* f = std::fopen(file.c_str(), "rb");
  if (f == nullptr) return refuse(std::string("cannot be read: ") + std::strerror(errno));
  std::string text;
  char buffer[1 << 16];
  std::size_t n = 0;
  while (text.size() <= kMaxConfigFile && (n = std::fread(buffer, 1, sizeof buffer, f)) > 0) text.append(buffer, n);
  const bool failed = std::ferror(f) != 0;
  const int error = errno;
  std::fclose(f);
  if (failed) return refuse(std::string("cannot be read: ") + std::strerror(error));
  if (text.size() > kMaxConfigFile) return refuse("is too large" + limit);
  return text;
}

std::optional<Json> load_json(const std::filesystem::path& file, ConfigErrors& errors) {
  const auto text = read_text(file, errors);
  return text ? parse_json(*text, file.string(), errors) : std::nullopt;
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '\\' && i + 1 < path.size()) {
      parts.back() += path[++i];
    } else if (path[i] == '.') {
      parts.emplace_back();
    } else if (path[i] == '[') {
      const std::size_t end = path.find(']', i);
      if (end == std::string_view::npos || end == i + 1 ||
          (end + 1 < path.size() && path[end + 1] != '.' && path[end + 1] != '['))
        return {};
      if (parts.back().empty() && parts.size() == 1) return {};
      parts.emplace_back(path.substr(i + 1, end - i - 1));
      i = end;
    } else {
      parts.back() += path[i];
    }
  }
  if (std::ranges::any_of(parts, [](const std::string& p) { return p.empty(); })) return {};
  return parts;
}

std::string join_path(std::string_view parent, std::string_view key) {
  std::string out(parent);
  if (!out.empty()) out += '.';
  for (const char c : key) {
    if (c == '.' || c == '\\' || c == '[') out += '\\';
    out += c;
  }
  return out;
}

namespace {

void stamp(Json& value, const Origin& origin) {
  value.origin = origin;
  if (value.is_array())
    for (Json& v : value.items()) stamp(v, origin);
  if (value.is_object())
    for (Json::Member& m : value.members()) {
      m.key_origin = origin;
      stamp(m.value, origin);
    }
}

}  // namespace

void apply_set(Json& root, const std::string& assignment, const Json& defaults, ConfigErrors& errors) {
  Origin origin;
  origin.source = std::make_shared<const std::string>("--set " + assignment);
  const std::size_t equals = assignment.find('=');
  const std::vector<std::string> parts = split_path(std::string_view(assignment).substr(0, equals));
  if (equals == std::string::npos || parts.empty())
    return errors.add(origin, {}, "expected PATH=VALUE, such as --set seed=7");
  const std::string text = assignment.substr(equals + 1);

  ConfigErrors quiet;
  std::optional<Json> value = parse_json(text, *origin.source, quiet);
  if (!value) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first != std::string::npos && (text[first] == '{' || text[first] == '[' || text[first] == '"'))
      return errors.add(origin, {}, quiet.all().front().message);
    value = Json(text);
  }
  stamp(*value, origin);

  Json* here = &root;
  const Json* fallback = &defaults;
  std::string walked;
  for (const std::string& part : parts) {
    if (here->is_null()) {
      *here = fallback != nullptr && fallback->is_array() ? *fallback : Json::object();
      stamp(*here, origin);
    }
    if (here->is_array()) {
      std::size_t index = 0;
      const auto r = std::from_chars(part.data(), part.data() + part.size(), index);
      if (r.ec != std::errc{} || r.ptr != part.data() + part.size())
        return errors.add(origin, walked, "is a list: expected an index from 0, got \"" + part + "\"");
      if (index >= here->items().size())
        return errors.add(origin, walked,
                          "has " + std::to_string(here->items().size()) + " elements; there is no element " + part);
      here = &here->items()[index];
      fallback = nullptr;
    } else if (here->is_object()) {
      const bool fresh = here->find(part) == nullptr;
      Json& next = (*here)[part];
      if (fresh) here->members().back().key_origin = origin;
      here = &next;
      fallback = fallback != nullptr ? fallback->find(part) : nullptr;
    } else {
      return errors.add(origin, walked, "is " + here->describe() + " and has no \"" + part + "\"");
    }
    walked = join_path(walked, part);
  }
  *here = std::move(*value);
}

}  // namespace sim
