// SPDX-License-Identifier: Apache-2.0
// Values that a sweep gives to a parameter: numbers, quantities with their unit, booleans, names; and lists and ranges of
// them, which are kept as rules and not written out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/json.h"
#include "sim/units.h"

namespace experiment {

/// One value. Times are in picoseconds, sizes in bytes, rates in bits per second.
struct SweepValue {
  enum class Kind : std::uint8_t { integer, real, time, bytes, rate, boolean, text, json };
  Kind kind = Kind::integer;
  std::int64_t n = 0;  ///< integer, time, bytes, rate, boolean (0 or 1)
  double d = 0;        ///< real
  sim::Json other;     ///< json: a list, an object or null
  std::string name;    ///< text

  bool is_number() const { return kind != Kind::text && kind != Kind::json && kind != Kind::boolean; }
  /// As a configuration holds it.
  sim::Json json() const;
  /// For people: "4 KiB", "10 us", "poll".
  std::string text() const;
  /// In the unit of unit_of(): ns, bytes, Gb/s, or the number itself. Only for numbers.
  double number() const;
  bool operator==(const SweepValue& o) const;
};

/// "ns", "bytes", "gbps", or "" for a kind without unit: the unit of number(), and the end of column names.
std::string_view unit_of(SweepValue::Kind kind);

/// A value as a configuration holds it: a string that is a time, a size or a rate becomes one.
SweepValue value_of(const sim::Json& j);
/// A value as the command line gives it: JSON if it parses as JSON, else a quantity, else a name.
SweepValue parse_sweep_value(std::string_view text);

/// What a parameter may be, in order.
class SweepValues {
 public:
  /// A range without a step (not of whole numbers) has this many equal steps; for random designs alone.
  static constexpr std::uint64_t kFreeSteps = 1'000'000;

  /// Values and ranges with commas between them: FROM..TO +STEP, FROM..TO xFACTOR, or FROM..TO. The error says where in
  /// `text` (columns from 1) and what was expected.
  static sim::Parsed<SweepValues> parse(std::string_view text);
  /// A list of values as they are, or a string for parse().
  static sim::Parsed<SweepValues> from_json(const sim::Json& j);

  std::uint64_t size() const;
  SweepValue at(std::uint64_t i) const;
  /// True when a range has no step, so that only random designs can use it.
  bool free() const;

 private:
  struct Piece {
    SweepValue from;  // the value itself when count is 1
    std::uint64_t count = 1;
    double step = 0, factor = 0;  // of reals, and of geometric ranges
    std::int64_t whole_step = 0;  // of all other kinds
    bool free = false;
    SweepValue at(std::uint64_t i) const;
  };
  friend class SweepValuesParser;
  std::vector<Piece> pieces_;
};

}  // namespace experiment
