// SPDX-License-Identifier: Apache-2.0
// Walks the leaves of a config struct and changes one of them to another legal value.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/config.h"
#include "sim/units.h"

namespace sys::test {

template <class T>
concept Struct = requires(T& t) {
  T::fields(t, [](auto&&...) {});
};
template <class T>
concept Checked = requires(const T& t) {
  t.check([](const std::string&, const std::string&) {});
};
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

constexpr unsigned kVariants = 4;

template <class E>
E next_enum(E e, unsigned variant) {
  const auto& values = sim::EnumNames<E>::values;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i].first == e) return values[(i + 1 + variant) % values.size()].first;
  return e;
}
// Another legal value of a number: twice, half, a quarter more, the minimum.
inline std::optional<double> other_number(double v, const sim::Range& r, unsigned variant) {
  const double candidate = variant == 0   ? v * 2 + 1
                           : variant == 1 ? v * 2
                           : variant == 2 ? v / 2
                                          : std::max(r.min, 0.0);
  if (candidate < r.min || candidate > r.max) return std::nullopt;
  return candidate;
}

/// Visits the leaves of a config struct. Without a target it lists their paths; with one it changes that leaf.
struct Walker {
  std::string prefix, target;
  unsigned variant = 0;
  std::vector<std::string>* paths = nullptr;
  bool changed = false;

  template <Struct C>
  void walk(C& config) {
    C::fields(config, [&](const char* name, auto& field, const char*, sim::Provenance, sim::Range range = {}) {
      const std::string before = prefix;
      prefix += (prefix.empty() ? "" : ".");
      prefix += name;
      visit(field, range);
      prefix = before;
    });
  }
  template <class T>
  void visit(T& field, const sim::Range& range) {
    if constexpr (Struct<T>) {
      walk(field);
    } else if constexpr (is_vector<T>) {
      if constexpr (Struct<typename T::value_type>)
        if (!field.empty()) walk(field[0]);
    } else if (paths != nullptr) {
      paths->push_back(prefix);
    } else if (prefix == target) {
      const T old = field;
      change(field, range);
      changed = field != old;
    }
  }
  template <class T>
  void change(T& field, const sim::Range& range) {
    if constexpr (std::is_same_v<T, bool>) {
      field = !field;
    } else if constexpr (std::is_same_v<T, sim::Picos>) {
      if (const auto v = other_number(static_cast<double>(field.n) + (variant == 0 ? 5'000 : 0), range, variant))
        field.n = static_cast<std::int64_t>(*v);
    } else if constexpr (std::is_same_v<T, sim::Bytes>) {
      if (const auto v = other_number(static_cast<double>(field.n), range, variant))
        field.n = static_cast<std::uint64_t>(*v);
    } else if constexpr (std::is_same_v<T, sim::BitRate>) {
      if (const auto v = other_number(static_cast<double>(field.bps), range, variant))
        field.bps = static_cast<std::uint64_t>(*v);
    } else if constexpr (std::is_enum_v<T>) {
      field = next_enum(field, variant);
    } else if constexpr (std::is_floating_point_v<T>) {
      field = field == 0 ? 0.2 : field / 2;
    } else if constexpr (std::is_integral_v<T>) {
      if (const auto v = other_number(static_cast<double>(field), range, variant)) field = static_cast<T>(*v);
    } else if constexpr (is_optional<T>) {
      if (field) field.reset();
      else field = typename T::value_type{1};
    } else if constexpr (std::is_same_v<T, std::string>) {
      constexpr std::array<const char*, 3> kValues{"17.2.3000", "10.0.7.9", "host1"};
      field = kValues[variant % kValues.size()];
    } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
      field["MLX5_SHUT_UP_BF"] = "1";
    }
  }
};

// Whether the fields of a struct, and of those inside, agree with each other.
template <Struct C>
bool agrees(C& config) {
  bool ok = true;
  if constexpr (Checked<C>) config.check([&](const std::string&, const std::string&) { ok = false; });
  C::fields(config, [&](const char*, auto& field, auto&&...) {
    using T = std::remove_reference_t<decltype(field)>;
    if constexpr (Struct<T>) ok = agrees(field) && ok;
    else if constexpr (is_vector<T>) {
      if constexpr (Struct<typename T::value_type>)
        for (auto& each : field) ok = agrees(each) && ok;
    }
  });
  return ok;
}

}  // namespace sys::test
