// SPDX-License-Identifier: Apache-2.0
// Time, size and rate as types, so that a latency can never be taken for a byte count.
// Simulated time is a 64-bit count of picoseconds (about 106 days).
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace sim {

/// A duration or an absolute simulated time, in picoseconds.
struct Picos {
  std::int64_t n = 0;

  constexpr auto operator<=>(const Picos&) const = default;
  constexpr Picos& operator+=(Picos o) {
    n += o.n;
    return *this;
  }
  constexpr Picos& operator-=(Picos o) {
    n -= o.n;
    return *this;
  }
  friend constexpr Picos operator+(Picos a, Picos b) { return {a.n + b.n}; }
  friend constexpr Picos operator-(Picos a, Picos b) { return {a.n - b.n}; }
  friend constexpr Picos operator*(Picos a, std::int64_t k) { return {a.n * k}; }
  friend constexpr Picos operator*(std::int64_t k, Picos a) { return {a.n * k}; }
  friend constexpr std::int64_t operator/(Picos a, Picos b) { return a.n / b.n; }
  constexpr double ns() const { return static_cast<double>(n) / 1e3; }
  constexpr double us() const { return static_cast<double>(n) / 1e6; }
  constexpr double s() const { return static_cast<double>(n) / 1e12; }
};
inline constexpr Picos kNever{std::numeric_limits<std::int64_t>::max()};

constexpr Picos max(Picos a, Picos b) { return a.n < b.n ? b : a; }
constexpr Picos min(Picos a, Picos b) { return b.n < a.n ? b : a; }

/// A number of bytes.
struct Bytes {
  std::uint64_t n = 0;
  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes o) {
    n += o.n;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.n + b.n}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.n - b.n}; }
};

/// A data rate in bits per second.
struct BitRate {
  std::uint64_t bps = 0;
  constexpr auto operator<=>(const BitRate&) const = default;
};

inline namespace literals {
constexpr Picos operator""_ps(unsigned long long v) { return {static_cast<std::int64_t>(v)}; }
constexpr Picos operator""_ns(unsigned long long v) { return {static_cast<std::int64_t>(v) * 1'000}; }
constexpr Picos operator""_us(unsigned long long v) { return {static_cast<std::int64_t>(v) * 1'000'000}; }
constexpr Picos operator""_ms(unsigned long long v) { return {static_cast<std::int64_t>(v) * 1'000'000'000}; }
constexpr Picos operator""_s(unsigned long long v) { return {static_cast<std::int64_t>(v) * 1'000'000'000'000}; }
constexpr Bytes operator""_B(unsigned long long v) { return {v}; }
constexpr Bytes operator""_KiB(unsigned long long v) { return {v << 10}; }
constexpr Bytes operator""_MiB(unsigned long long v) { return {v << 20}; }
constexpr Bytes operator""_GiB(unsigned long long v) { return {v << 30}; }
constexpr BitRate operator""_Gbps(unsigned long long v) { return {v * 1'000'000'000}; }
}  // namespace literals

/// Turns byte counts into serialisation times at one rate, carrying the sub-picosecond remainder so that a long run
/// of transfers takes exactly total_bits / rate (rounded down once, not per transfer).
class RateMeter {
 public:
  explicit constexpr RateMeter(BitRate rate) : rate_(rate) {}
  constexpr Picos take(Bytes b) {
    const auto num = static_cast<unsigned __int128>(b.n) * 8'000'000'000'000ULL + carry_;
    carry_ = static_cast<std::uint64_t>(num % rate_.bps);
    return {static_cast<std::int64_t>(num / rate_.bps)};
  }
  constexpr BitRate rate() const { return rate_; }

 private:
  BitRate rate_;
  std::uint64_t carry_ = 0;
};

/// Outcome of parsing a quantity: `error` is empty on success and says what was expected otherwise.
template <class T>
struct Parsed {
  T value{};
  std::string error;
  explicit operator bool() const { return error.empty(); }
};

/// "250 ns", "1.5 us", "2 ms", "3 s", "40 ps": a number, optional space, a unit; fractions that are not a whole number
/// of picoseconds are refused. A bare number is refused.
Parsed<Picos> parse_time(std::string_view text);
/// "64 B", "4 KiB", "1 MiB", "2 GiB", "1 kB", "1 MB" (powers of 1000 for kB/MB/GB).
Parsed<Bytes> parse_bytes(std::string_view text);
/// "100 Gb/s", "25 Gbps", "800 Mb/s", "10 kb/s".
Parsed<BitRate> parse_rate(std::string_view text);

/// The shortest exact text that the parsers above read back: "250 ns", "1.5 us", "4 KiB", "100 Gb/s".
std::string to_string(Picos t);
std::string to_string(Bytes b);
std::string to_string(BitRate r);

}  // namespace sim
