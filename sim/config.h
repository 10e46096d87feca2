// SPDX-License-Identifier: Apache-2.0
// The shape of a config struct. Each block's struct sits above the block's class and lists its fields once, in a static
// template `fields(self, visitor)`; reading, unknown-key refusal, range checks, --set, `rdmasim config`, the reference
// page and the JSON Schema all walk that list. This header is free of JSON so that models do not pay for it.
//
//   struct LinkConfig {
//     sim::Picos latency{sim::Picos{150'000}};
//     template <class Self, class V> static void fields(Self& c, V&& v) {
//       v("latency", c.latency, "one-way latency of the link", sim::assumed("typical short cable"));
//     }
//   };
//
// Field types: Picos, Bytes, BitRate, bool, integers, double, std::string, enums with EnumNames, std::vector,
// std::optional and std::map<std::string, X> of these, nested config structs, sim::Located for a string that keeps its
// place in the file, and sim::Json for "any value". A struct with a member `sim::Origin origin` learns where it was written.
//
// A struct whose fields depend on each other adds `template <class F> void check(F&& fail) const`, which is called after
// reading and says what is wrong with which field ("" = the whole struct): `if (!is_power_of_two(ways)) fail("ways", "must be a power of two");`.
#pragma once

#include <array>
#include <limits>
#include <string_view>
#include <utility>

namespace sim {

/// Where a default comes from.
struct Provenance {
  enum Kind { measured, spec, assumed, required } kind;
  const char* source;
};
constexpr Provenance measured(const char* source) { return {Provenance::measured, source}; }
constexpr Provenance spec(const char* source) { return {Provenance::spec, source}; }
constexpr Provenance assumed(const char* source) { return {Provenance::assumed, source}; }
/// There is no default: the user has to give the value.
constexpr Provenance required() { return {Provenance::required, "given by the user"}; }

/// Inclusive bounds, in the base unit of the field (ps, bytes, bits per second, or the number itself).
struct Range {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
};

/// Specialise for each enum that appears in a config:
///   template <> struct sim::EnumNames<Mode> {
///     static constexpr std::array<std::pair<Mode, std::string_view>, 2> values{{{Mode::a, "a"}, {Mode::b, "b"}}};
///   };
template <class E>
struct EnumNames;

template <class E>
constexpr std::string_view enum_name(E e) {
  for (const auto& [value, name] : EnumNames<E>::values)
    if (value == e) return name;
  return "?";
}

}  // namespace sim
