// SPDX-License-Identifier: Apache-2.0
// Arithmetic ranges of whole numbers and quantities are exact; a geometric range rounds each of its values to a whole one.
#include "experiment/sweep_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "sim/config_json.h"

namespace experiment {
namespace {

using Kind = SweepValue::Kind;

SweepValue whole(Kind kind, std::int64_t n) {
  SweepValue v;
  v.kind = kind;
  v.n = n;
  return v;
}
SweepValue real(double d) {
  SweepValue v;
  v.kind = Kind::real;
  v.d = d;
  return v;
}
SweepValue named(std::string_view text) {
  SweepValue v;
  v.kind = Kind::text;
  v.name = text;
  return v;
}

std::optional<SweepValue> quantity(std::string_view text) {
  if (const auto t = sim::parse_time(text)) return whole(Kind::time, t.value.n);
  if (const auto b = sim::parse_bytes(text); b && b.value.n <= INT64_MAX)
    return whole(Kind::bytes, static_cast<std::int64_t>(b.value.n));
  if (const auto r = sim::parse_rate(text); r && r.value.bps <= INT64_MAX)
    return whole(Kind::rate, static_cast<std::int64_t>(r.value.bps));
  return std::nullopt;
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

double amount(const SweepValue& v) { return v.kind == Kind::real ? v.d : static_cast<double>(v.n); }

}  // namespace

sim::Json SweepValue::json() const {
  switch (kind) {
    case Kind::integer:
      return sim::Json(n);
    case Kind::real:
      return sim::Json(d);
    case Kind::boolean:
      return sim::Json(n != 0);
    case Kind::json:
      return other;
    default:
      return sim::Json(text());
  }
}

std::string SweepValue::text() const {
  switch (kind) {
    case Kind::time:
      return sim::to_string(sim::Picos{n});
    case Kind::bytes:
      return sim::to_string(sim::Bytes{static_cast<std::uint64_t>(n)});
    case Kind::rate:
      return sim::to_string(sim::BitRate{static_cast<std::uint64_t>(n)});
    case Kind::text:
      return name;
    default:
      return json().compact();
  }
}

double SweepValue::number() const {
  if (kind == Kind::time) return static_cast<double>(n) / 1e3;
  if (kind == Kind::rate) return static_cast<double>(n) / 1e9;
  return amount(*this);
}

bool SweepValue::operator==(const SweepValue& o) const { return kind == o.kind && json() == o.json(); }

std::string_view unit_of(Kind kind) {
  if (kind == Kind::time) return "ns";
  if (kind == Kind::bytes) return "bytes";
  return kind == Kind::rate ? "gbps" : "";
}

SweepValue value_of(const sim::Json& j) {
  if (j.is_bool()) return whole(Kind::boolean, j.boolean() ? 1 : 0);
  if (j.is_integer() && j.as_int64()) return whole(Kind::integer, *j.as_int64());
  if (j.is_number()) return real(j.number());
  if (j.is_string()) {
    const auto q = quantity(j.string());
    return q ? *q : named(j.string());
  }
  SweepValue v;
  v.kind = Kind::json;
  v.other = j;
  return v;
}

SweepValue parse_sweep_value(std::string_view text) {
  text = trim(text);
  sim::ConfigErrors quiet;
  if (const auto j = sim::parse_json(text, "value", quiet)) return value_of(*j);
  return value_of(sim::Json(text));
}

SweepValue SweepValues::Piece::at(std::uint64_t i) const {
  if (i == 0) return from;
  const auto k = static_cast<double>(i);
  SweepValue v = from;
  if (from.kind == Kind::real) v.d = factor > 0 ? from.d * std::pow(factor, k) : from.d + step * k;
  else if (factor > 0) v.n = std::llround(static_cast<double>(from.n) * std::pow(factor, k));
  else v.n = from.n + whole_step * static_cast<std::int64_t>(i);
  return v;
}

std::uint64_t SweepValues::size() const {
  std::uint64_t n = 0;
  for (const Piece& p : pieces_) n += p.count;
  return n;
}

SweepValue SweepValues::at(std::uint64_t i) const {
  for (const Piece& p : pieces_) {
    if (i < p.count) return p.at(i);
    i -= p.count;
  }
  return {};
}

bool SweepValues::free() const {
  return std::ranges::any_of(pieces_, [](const Piece& p) { return p.free; });
}

/// Reads one list; the first mistake ends it.
class SweepValuesParser {
 public:
  explicit SweepValuesParser(std::string_view text) : text_(text) {}

  sim::Parsed<SweepValues> run() {
    for (std::size_t begin = 0; begin <= text_.size() && error_.empty();) {
      const std::size_t end = end_of_item(begin);
      item(begin, end);
      begin = end + 1;
    }
    return {std::move(out_), error_};
  }

 private:
  /// The comma behind the item, or the end; commas in quotes and brackets do not count.
  std::size_t end_of_item(std::size_t i) const {
    int depth = 0;
    bool quoted = false;
    for (; i < text_.size(); ++i) {
      const char c = text_[i];
      if (quoted) {
        if (c == '\\') ++i;
        else if (c == '"') quoted = false;
        continue;
      }
      if (c == '"') quoted = true;
      else if (c == '[' || c == '{') ++depth;
      else if (c == ']' || c == '}') --depth;
      else if (c == ',' && depth == 0) return i;
    }
    return text_.size();
  }

  void fail(std::size_t at, const std::string& message) {
    while (at < text_.size() && text_[at] == ' ') ++at;
    if (error_.empty()) error_ = "column " + std::to_string(at + 1) + ": " + message;
  }

  void item(std::size_t begin, std::size_t end) {
    const std::string_view raw = text_.substr(begin, end - begin), text = trim(raw);
    if (text.empty()) return fail(begin, "expected a value or a range such as \"16..4096 x2\"");
    const std::size_t dots = raw.find("..");
    if (text.front() == '"' || text.front() == '[' || text.front() == '{' || dots == std::string_view::npos) {
      out_.pieces_.push_back({parse_sweep_value(text), 1, 0, 0, 0, false});
      return;
    }
    range(begin, begin + dots, end);
  }

  void range(std::size_t begin, std::size_t dots, std::size_t end) {
    SweepValue from = parse_sweep_value(text_.substr(begin, dots - begin));
    const std::size_t rule = find_rule(dots + 2, end);
    SweepValue to = parse_sweep_value(text_.substr(dots + 2, rule - dots - 2));
    if (!from.is_number()) return fail(begin, "a range begins with a number or a quantity, not with " + shown(from));
    if (!to.is_number()) return fail(dots + 2, "a range ends with a number or a quantity, not with " + shown(to));
    if (!agree(from, to))
      return fail(dots + 2, from.text() + " and " + to.text() + " are of different kinds and make no range");
    if (amount(to) < amount(from)) return fail(dots + 2, "the range ends before it begins");
    if (rule == end) return free_range(from, to);
    if (text_[rule] == '+') return arithmetic(from, to, rule, end);
    geometric(from, to, rule, end);
  }

  /// The sign before a step or a factor; `end` when there is none.
  std::size_t find_rule(std::size_t i, std::size_t end) const {
    for (; i + 1 < end; ++i)
      if (text_[i] == ' ' && (text_[i + 1] == '+' || text_[i + 1] == 'x' || text_[i + 1] == '*')) return i + 1;
    return end;
  }

  static std::string shown(const SweepValue& v) { return v.text().empty() ? "nothing" : "\"" + v.text() + "\""; }

  /// Makes both of one kind if they can be: 0 is of any kind, and a whole number may stand for a decimal one.
  static bool agree(SweepValue& a, SweepValue& b) {
    if (a.kind == b.kind) return true;
    if (a.kind == Kind::integer && a.n == 0 && b.kind != Kind::real) return a.kind = b.kind, true;
    if (a.kind == Kind::integer && b.kind == Kind::real) return a = real(amount(a)), true;
    if (a.kind == Kind::real && b.kind == Kind::integer) return b = real(amount(b)), true;
    return false;
  }

  void free_range(const SweepValue& from, const SweepValue& to) {
    if (from.kind == Kind::real) {
      const double step = (to.d - from.d) / static_cast<double>(SweepValues::kFreeSteps);
      out_.pieces_.push_back({from, SweepValues::kFreeSteps + 1, step, 0, 0, true});
    } else {
      const auto count = static_cast<std::uint64_t>(to.n - from.n) + 1;
      out_.pieces_.push_back({from, count, 0, 0, 1, from.kind != Kind::integer});
    }
  }

  void arithmetic(SweepValue from, SweepValue to, std::size_t rule, std::size_t end) {
    SweepValue step = parse_sweep_value(text_.substr(rule + 1, end - rule - 1));
    if (!step.is_number()) return fail(rule + 1, "expected a step such as +1 or +10ns");
    if (from.kind == Kind::integer && step.kind == Kind::real) from = real(amount(from)), to = real(amount(to));
    if (from.kind == Kind::real && step.kind == Kind::integer) step = real(amount(step));
    if (step.kind != from.kind) return fail(rule + 1, "the step is of another kind than the range");
    if (amount(step) <= 0) return fail(rule + 1, "the step has to be more than 0");
    SweepValues::Piece p{from, 1, 0, 0, 0, false};
    if (from.kind == Kind::real) {
      p.step = step.d;
      p.count = static_cast<std::uint64_t>(std::floor((to.d - from.d) / step.d * (1 + 1e-12))) + 1;
    } else {
      p.whole_step = step.n;
      p.count = static_cast<std::uint64_t>((to.n - from.n) / step.n) + 1;
    }
    out_.pieces_.push_back(std::move(p));
  }

  void geometric(const SweepValue& from, const SweepValue& to, std::size_t rule, std::size_t end) {
    const SweepValue factor = parse_sweep_value(text_.substr(rule + 1, end - rule - 1));
    if (factor.kind != Kind::integer && factor.kind != Kind::real)
      return fail(rule + 1, "expected a factor such as x2");
    if (amount(factor) <= 1) return fail(rule + 1, "the factor has to be more than 1");
    if (amount(from) <= 0) return fail(rule, "a range with a factor begins above 0");
    SweepValues::Piece p{from, 1, 0, amount(factor), 0, false};
    while (amount(p.at(p.count)) <= amount(to) * (1 + 1e-12)) {
      if (p.at(p.count) == p.at(p.count - 1)) return fail(rule, "the factor is too small to reach another value");
      ++p.count;
    }
    out_.pieces_.push_back(std::move(p));
  }

  std::string_view text_;
  SweepValues out_;
  std::string error_;
};

sim::Parsed<SweepValues> SweepValues::parse(std::string_view text) { return SweepValuesParser(text).run(); }

sim::Parsed<SweepValues> SweepValues::from_json(const sim::Json& j) {
  if (j.is_string()) return parse(j.string());
  if (!j.is_array()) return {{}, "expected a list of values or a string such as \"16..4096 x2\", got " + j.describe()};
  if (j.items().empty()) return {{}, "is empty: there is no value to take"};
  SweepValues out;
  for (const sim::Json& item : j.items()) out.pieces_.push_back({value_of(item), 1, 0, 0, 0, false});
  return {std::move(out), {}};
}

}  // namespace experiment
