// SPDX-License-Identifier: Apache-2.0
// The parts of the binding that do not depend on the struct: reading of scalars and the wording of what was expected.
#include "sim/config_read.h"

#include <algorithm>
#include <sstream>

namespace sim {
namespace {

std::string quantity(double v, TypeInfo::Kind kind) {
  if (kind == TypeInfo::Kind::time || kind == TypeInfo::Kind::bytes || kind == TypeInfo::Kind::rate)
    v = std::clamp(v, 0.0, 9e18);
  switch (kind) {
    case TypeInfo::Kind::time:
      return to_string(Picos{static_cast<std::int64_t>(v)});
    case TypeInfo::Kind::bytes:
      if (const auto n = static_cast<std::uint64_t>(v); n >= 1'000'000'000 && n % 1'000'000'000 == 0)
        return std::to_string(n / 1'000'000'000) + " GB";
      return to_string(Bytes{static_cast<std::uint64_t>(v)});
    case TypeInfo::Kind::rate:
      return to_string(BitRate{static_cast<std::uint64_t>(v)});
    default: {
      std::ostringstream s;
      s.precision(15);
      s << v;
      return s.str();
    }
  }
}

constexpr const char* kTimeExpected = "a time with its unit such as \"250 ns\"";
constexpr const char* kBytesExpected = "a size with its unit such as \"4 KiB\"";
constexpr const char* kRateExpected = "a rate with its unit such as \"100 Gb/s\"";

}  // namespace

std::string TypeInfo::text() const {
  switch (kind) {
    case Kind::time:
      return "time";
    case Kind::bytes:
      return "size";
    case Kind::rate:
      return "rate";
    case Kind::boolean:
      return "true or false";
    case Kind::integer:
      return "integer";
    case Kind::number:
      return "number";
    case Kind::string:
      return "string";
    case Kind::any:
      return "any value";
    case Kind::structure:
      return like.empty() ? "object" : "object like " + like;
    case Kind::list:
      return "list of " + element->text();
    case Kind::map:
      return "map of name to " + element->text();
    case Kind::enumeration: {
      std::string out = "one of ";
      for (const std::string& c : choices) out += (c == choices.front() ? "" : ", ") + c;
      return out;
    }
  }
  return {};
}

std::string range_text(const Range& range, TypeInfo::Kind kind) {
  const bool low = range.min != Range{}.min, high = range.max != Range{}.max;
  if (low && high) return quantity(range.min, kind) + " to " + quantity(range.max, kind);
  if (low) return "at least " + quantity(range.min, kind);
  if (high) return "up to " + quantity(range.max, kind);
  return {};
}

namespace config {
namespace {

template <class T>
bool read_quantity(ReadContext& context, const Json& j, T& out, Parsed<T> (*parse)(std::string_view),
                   const char* what) {
  if (!j.is_string()) {
    context.expected(j, what);
    return false;
  }
  const Parsed<T> p = parse(j.string());
  if (!p) {
    context.fail(j.origin, "cannot read " + j.describe() + ": " + p.error);
    return false;
  }
  out = p.value;
  return true;
}

}  // namespace

bool ReadContext::read(const Json& j, Picos& out) {
  if (out == kNever && j.is_string() && j.string() == to_string(kNever)) return true;  // where the default is "never"
  return read_quantity(*this, j, out, &parse_time, kTimeExpected);
}
bool ReadContext::read(const Json& j, Bytes& out) { return read_quantity(*this, j, out, &parse_bytes, kBytesExpected); }
bool ReadContext::read(const Json& j, BitRate& out) { return read_quantity(*this, j, out, &parse_rate, kRateExpected); }

bool ReadContext::read(const Json& j, bool& out) {
  if (!j.is_bool()) {
    expected(j, "true or false");
    return false;
  }
  out = j.boolean();
  return true;
}

bool ReadContext::read(const Json& j, double& out) {
  if (!j.is_number()) {
    expected(j, "a number");
    return false;
  }
  out = j.number();
  return true;
}

bool ReadContext::read(const Json& j, std::string& out) {
  if (!j.is_string()) {
    expected(j, "a string");
    return false;
  }
  out = j.string();
  return true;
}

bool ReadContext::read_signed(const Json& j, std::int64_t& out, std::int64_t min, std::int64_t max) {
  const auto v = j.is_number() ? j.as_int64() : std::nullopt;
  if (v && *v >= min && *v <= max) {
    out = *v;
    return true;
  }
  expected(j, "an integer from " + std::to_string(min) + " to " + std::to_string(max));
  return false;
}

bool ReadContext::read_unsigned(const Json& j, std::uint64_t& out, std::uint64_t max) {
  const auto v = j.is_number() ? j.as_uint64() : std::nullopt;
  if (v && *v <= max) {
    out = *v;
    return true;
  }
  expected(j, "an integer from 0 to " + std::to_string(max));
  return false;
}

std::optional<std::size_t> ReadContext::read_choice(const Json& j, const std::vector<std::string>& names) {
  if (j.is_string())
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == j.string()) return i;
  fail(j.origin, "expected " + quoted_list(names) + ", got " + j.describe() +
                     (j.is_string() ? did_you_mean(j.string(), names) : ""));
  return std::nullopt;
}

void ReadContext::check_range(const Json& j, double value, const Range& range, TypeInfo::Kind kind) {
  if (value >= range.min && value <= range.max) return;
  fail(j.origin, "out of range: expected " + range_text(range, kind) + ", got " + quantity(value, kind));
}

void ReadContext::unknown_key(const Json::Member& m, const std::vector<std::string>& known) {
  std::string hint = did_you_mean(m.key, known);
  if (hint.empty() && !known.empty() && known.size() <= 12) {
    hint = "; known here:";
    for (const std::string& k : known) hint += (k == known.front() ? " " : ", ") + k;
  }
  fail(m.key_origin, "unknown key \"" + m.key + "\"" + hint);
}

}  // namespace config
}  // namespace sim
