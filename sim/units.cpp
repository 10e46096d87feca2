// SPDX-License-Identifier: Apache-2.0
// Parsing and printing of quantities. Numbers are read as exact decimal fractions, never through floating point.
#include "sim/units.h"

#include <array>
#include <cctype>

namespace sim {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr std::array<Unit, 5> kTime{
    {{"ps", 1}, {"ns", 1'000}, {"us", 1'000'000}, {"ms", 1'000'000'000}, {"s", 1'000'000'000'000}}};
constexpr std::array<Unit, 7> kBytes{{{"B", 1},
                                      {"KiB", 1ULL << 10},
                                      {"MiB", 1ULL << 20},
                                      {"GiB", 1ULL << 30},
                                      {"kB", 1'000},
                                      {"MB", 1'000'000},
                                      {"GB", 1'000'000'000}}};
constexpr std::array<Unit, 8> kRate{{{"b/s", 1},
                                     {"kb/s", 1'000},
                                     {"Mb/s", 1'000'000},
                                     {"Gb/s", 1'000'000'000},
                                     {"bps", 1},
                                     {"kbps", 1'000},
                                     {"Mbps", 1'000'000},
                                     {"Gbps", 1'000'000'000}}};

template <std::size_t N>
Parsed<std::uint64_t> parse(std::string_view text, const std::array<Unit, N>& units, std::string_view what,
                            std::string_view example) {
  const auto expected = [&](std::string_view why) {
    return Parsed<std::uint64_t>{
        0, std::string(why) + "; expected " + std::string(what) + " such as \"" + std::string(example) + "\""};
  };
  std::size_t i = 0;
  unsigned __int128 mantissa = 0;
  std::uint64_t scale = 1;
  bool digits = false, point = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !point) {
      point = true;
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      digits = true;
      mantissa = mantissa * 10 + static_cast<unsigned>(c - '0');
      if (point) scale *= 10;
      if (mantissa > (static_cast<unsigned __int128>(1) << 80) || scale > 1'000'000'000'000'000'000ULL)
        return expected("number too long");
    } else {
      break;
    }
  }
  if (!digits) return expected("no number");
  while (i < text.size() && text[i] == ' ') ++i;
  const std::string_view unit = text.substr(i);
  if (unit.empty()) return expected("unit missing");
  for (const Unit& u : units) {
    if (u.name != unit) continue;
    const unsigned __int128 v = mantissa * u.factor;
    if (v % scale != 0) return expected("not a whole number of " + std::string(units[0].name));
    if (v / scale > (1ULL << 62)) return expected("value too large");
    return {static_cast<std::uint64_t>(v / scale), {}};
  }
  std::string names;
  for (const Unit& u : units) names += (names.empty() ? "" : ", ") + std::string(u.name);
  return expected("unknown unit \"" + std::string(unit) + "\" (known: " + names + ")");
}

// Largest unit in which `v` has at most three decimals, so that the text stays short and exact.
std::string print(std::uint64_t v, const Unit* units, std::size_t count, unsigned decimals) {
  std::uint64_t step = 1;
  for (unsigned i = 0; i < decimals; ++i) step *= 10;
  std::size_t best = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (units[i].factor <= v && (units[i].factor < step ? v % units[i].factor == 0 : v % (units[i].factor / step) == 0))
      best = i;
  const std::uint64_t f = units[best].factor;
  std::string out = std::to_string(v / f);
  if (const std::uint64_t rest = v % f; rest != 0) {
    std::string frac = std::to_string(rest / (f / step));
    frac.insert(0, decimals - frac.size(), '0');
    while (frac.back() == '0') frac.pop_back();
    out += "." + frac;
  }
  return out + " " + std::string(units[best].name);
}

}  // namespace

Parsed<Picos> parse_time(std::string_view text) {
  const auto p = parse(text, kTime, "a time with its unit", "250 ns");
  return {{static_cast<std::int64_t>(p.value)}, p.error};
}
Parsed<Bytes> parse_bytes(std::string_view text) {
  const auto p = parse(text, kBytes, "a size with its unit", "4 KiB");
  return {{p.value}, p.error};
}
Parsed<BitRate> parse_rate(std::string_view text) {
  const auto p = parse(text, kRate, "a rate with its unit", "100 Gb/s");
  return {{p.value}, p.error};
}

std::string to_string(Picos t) {
  if (t == kNever) return "never";
  if (t.n < 0) return std::string("-").append(to_string(Picos{-t.n}));
  return print(static_cast<std::uint64_t>(t.n), kTime.data(), kTime.size(), 3);
}
std::string to_string(Bytes b) { return print(b.n, kBytes.data(), 4, 0); }
std::string to_string(BitRate r) { return print(r.bps, kRate.data(), 4, 3); }

}  // namespace sim
