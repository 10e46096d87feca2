// SPDX-License-Identifier: Apache-2.0
// The JSON tree: access, RFC 6901 pointers, merge and deterministic printing (RFC 8259). Doubles are printed as the
// shortest text that reads back to the same value.
#include "sim/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace sim {
namespace {

void print_string(std::string& out, std::string_view s) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : s) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (const auto u = static_cast<unsigned char>(c); u < 0x20) {
          out += "\\u00";
          out += kHex[u >> 4];
          out += kHex[u & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void print_double(std::string& out, double d) {
  if (!std::isfinite(d)) {  // JSON has no such number
    out += "null";
    return;
  }
  char buffer[32];
  const auto r = std::to_chars(buffer, buffer + sizeof buffer, d);
  out.append(buffer, r.ptr);
}

void print_scalar(std::string& out, const Json& j) {
  if (j.is_null()) out += "null";
  else if (j.is_bool()) out += j.boolean() ? "true" : "false";
  else if (const auto i = j.is_integer() ? j.as_int64() : std::nullopt) out += std::to_string(*i);
  else if (const auto u = j.is_integer() ? j.as_uint64() : std::nullopt) out += std::to_string(*u);
  else if (j.is_number()) print_double(out, j.number());
  else print_string(out, j.string());
}

void print_compact(std::string& out, const Json& j, std::size_t limit) {
  if (out.size() > limit) return;
  if (j.is_array()) {
    out += '[';
    for (const Json& v : j.items()) {
      if (&v != &j.items().front()) out += ", ";
      print_compact(out, v, limit);
    }
    out += ']';
  } else if (j.is_object()) {
    out += '{';
    for (const Json::Member& m : j.members()) {
      if (&m != &j.members().front()) out += ", ";
      print_string(out, m.key);
      out += ": ";
      print_compact(out, m.value, limit);
    }
    out += '}';
  } else {
    print_scalar(out, j);
  }
}

void print_pretty(std::string& out, const Json& j, std::size_t indent, std::size_t used, std::size_t width) {
  if (!j.is_array() && !j.is_object()) return print_scalar(out, j);
  const std::size_t room = width > indent + used ? width - indent - used : 0;
  std::string line;
  print_compact(line, j, room);
  if (line.size() <= room) {
    out += line;
    return;
  }
  const std::string pad(indent + 2, ' ');
  const bool object = j.is_object();
  out += object ? "{\n" : "[\n";
  const std::size_t n = object ? j.members().size() : j.items().size();
  for (std::size_t i = 0; i < n; ++i) {
    out += pad;
    std::size_t before = out.size();
    if (object) {
      print_string(out, j.members()[i].key);
      out += ": ";
    }
    before = out.size() - before;
    print_pretty(out, object ? j.members()[i].value : j.items()[i], indent + 2, before + 1, width);
    out += i + 1 < n ? ",\n" : "\n";
  }
  out.append(indent, ' ');
  out += object ? '}' : ']';
}

/// Damerau-Levenshtein distance with adjacent swaps.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::string Origin::text() const {
  if (source == nullptr) return {};
  if (line == 0) return *source;
  return *source + ":" + std::to_string(line) + ":" + std::to_string(column);
}

double Json::number() const {
  if (const auto* i = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*i);
  if (const auto* u = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*u);
  return std::get<double>(value_);
}

std::optional<std::int64_t> Json::as_int64() const {
  if (const auto* i = std::get_if<std::int64_t>(&value_)) return *i;
  if (const auto* u = std::get_if<std::uint64_t>(&value_); u != nullptr && *u <= static_cast<std::uint64_t>(INT64_MAX))
    return static_cast<std::int64_t>(*u);
  if (const auto* d = std::get_if<double>(&value_); d != nullptr && std::trunc(*d) == *d && std::abs(*d) < 9e15)
    return static_cast<std::int64_t>(*d);
  return std::nullopt;
}

std::optional<std::uint64_t> Json::as_uint64() const {
  if (const auto* u = std::get_if<std::uint64_t>(&value_)) return *u;
  if (const auto i = as_int64(); i && *i >= 0) return static_cast<std::uint64_t>(*i);
  return std::nullopt;
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const Member& m : members())
    if (m.key == key) return &m.value;
  return nullptr;
}
Json* Json::find(std::string_view key) { return const_cast<Json*>(static_cast<const Json*>(this)->find(key)); }

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object{};
  if (Json* found = find(key)) return *found;
  return members().emplace_back(Member{std::string(key), Json{}, Origin{}}).value;
}

void Json::erase(std::string_view key) {
  if (is_object()) std::erase_if(members(), [&](const Member& m) { return m.key == key; });
}

void Json::push_back(Json v) {
  if (is_null()) value_ = Array{};
  items().push_back(std::move(v));
}

std::string Json::pointer_error(std::string_view pointer) {
  if (pointer.empty()) return {};
  if (pointer.front() != '/') return "a JSON pointer starts with \"/\", such as \"/workloads/0/messages\"";
  for (std::size_t i = 0; i < pointer.size(); ++i)
    if (pointer[i] == '~' && (i + 1 == pointer.size() || (pointer[i + 1] != '0' && pointer[i + 1] != '1')))
      return "\"~\" in a JSON pointer is written \"~0\", and \"/\" in a key \"~1\"";
  return {};
}

const Json* Json::at(std::string_view pointer) const {
  const Json* here = this;
  while (!pointer.empty() && here != nullptr) {
    pointer.remove_prefix(1);
    const std::string_view raw = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(raw.size());
    std::string token;
    for (std::size_t i = 0; i < raw.size(); ++i)
      token += raw[i] == '~' && i + 1 < raw.size() ? (raw[++i] == '1' ? '/' : '~') : raw[i];
    if (here->is_array()) {
      std::size_t index = 0;
      const auto r = std::from_chars(token.data(), token.data() + token.size(), index);
      const bool ok = r.ec == std::errc{} && r.ptr == token.data() + token.size() && (token == "0" || token[0] != '0');
      here = ok && index < here->items().size() ? &here->items()[index] : nullptr;
    } else {
      here = here->find(token);
    }
  }
  return here;
}

bool Json::operator==(const Json& o) const {
  if (is_integer() && o.is_integer()) return as_int64() == o.as_int64() && as_uint64() == o.as_uint64();
  if (is_number() && o.is_number()) return number() == o.number();
  if (is_object() && o.is_object()) {
    if (members().size() != o.members().size()) return false;
    return std::ranges::all_of(members(), [&](const Member& m) {
      const Json* other = o.find(m.key);
      return other != nullptr && *other == m.value;
    });
  }
  if (is_array() && o.is_array()) return std::ranges::equal(items(), o.items());
  if (value_.index() != o.value_.index()) return false;
  return is_null() || (is_bool() ? boolean() == o.boolean() : string() == o.string());
}

std::string Json::dump(std::size_t width) const {
  std::string out;
  print_pretty(out, *this, 0, 0, width);
  return out;
}

std::string Json::compact() const {
  std::string out;
  print_compact(out, *this, std::string::npos);
  return out;
}

std::string Json::describe() const {
  if (is_array()) return "a list";
  if (is_object()) return "an object";
  std::string text = compact();
  if (is_string() && text.size() > 60) text = text.substr(0, 56) + "…\"";
  if (is_string()) return "the string " + text;
  if (is_number()) return "the number " + text;
  return text;
}

void merge(Json& base, const Json& over) {
  if (!base.is_object() || !over.is_object()) {
    base = over;
    return;
  }
  for (const Json::Member& m : over.members()) {
    if (Json* mine = base.find(m.key)) merge(*mine, m.value);
    else base.members().push_back(m);
  }
  base.origin = over.origin;
}

std::string_view nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  if (word.size() > 64) return best;
  for (const std::string& c : candidates) {
    if (c.size() > 64) continue;
    if (const std::size_t d = distance(word, c); d < best_distance && d < c.size()) {
      best_distance = d;
      best = c;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string_view n = nearest(word, candidates);
  return n.empty() ? std::string{} : "; did you mean \"" + std::string(n) + "\"?";
}

std::string quoted_list(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i)
    out += (i == 0 ? "\"" : i + 1 == words.size() ? " or \"" : ", \"") + words[i] + "\"";
  return out;
}

}  // namespace sim
