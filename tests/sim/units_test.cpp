// SPDX-License-Identifier: Apache-2.0
// Quantities: exact arithmetic, parsing with every refusal, printing that reads back.
#include "sim/units.h"

#include <gtest/gtest.h>

#include "sim/rng.h"

namespace sim {
namespace {

TEST(RateMeter, AMillionTransfersTakeExactlyTheirBitsOverTheRate) {
  // 64 B at 7 Gb/s is 73142.857… ps each: only the carried remainder keeps the sum exact.
  RateMeter meter{7_Gbps};
  Picos sum{0};
  for (int i = 0; i < 1'000'000; ++i) sum += meter.take(64_B);
  EXPECT_EQ(sum.n, 73'142'857'142);  // floor(64e6 * 8e12 / 7e9)
}

TEST(RateMeter, MixedSizesNeverDriftByMoreThanOnePicosecond) {
  Rng rng(3, "units");
  const BitRate rate{99'999'999'977};
  RateMeter meter{rate};
  Picos sum{0};
  std::uint64_t bytes = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const Bytes b{rng.below(9000)};
    bytes += b.n;
    sum += meter.take(b);
    if (i % 100'000 == 0) {
      ASSERT_EQ(static_cast<std::uint64_t>(sum.n),
                static_cast<std::uint64_t>(static_cast<unsigned __int128>(bytes) * 8'000'000'000'000ULL / rate.bps));
    }
  }
}

TEST(RateMeter, OneByteAtOneBitPerSecondTakesEightSeconds) {
  RateMeter meter{BitRate{1}};
  EXPECT_EQ(meter.take(1_B), 8_s);
}

TEST(ParseTime, ReadsEveryUnitAndExactFractions) {
  EXPECT_EQ(parse_time("40 ps").value, 40_ps);
  EXPECT_EQ(parse_time("250 ns").value, 250_ns);
  EXPECT_EQ(parse_time("250ns").value, 250_ns);
  EXPECT_EQ(parse_time("1.5 us").value, 1500_ns);
  EXPECT_EQ(parse_time("0.001 ns").value, 1_ps);
  EXPECT_EQ(parse_time("2 ms").value, 2_ms);
  EXPECT_EQ(parse_time("3 s").value, 3_s);
  EXPECT_EQ(parse_time("0 ns").value, 0_ps);
  EXPECT_EQ(parse_time("0.1 us").value, 100_ns);  // no binary fraction
}

struct Refused {
  const char* text;
  const char* why;
};
class ParseTimeRefuses : public testing::TestWithParam<Refused> {};
TEST_P(ParseTimeRefuses, WithTheReasonAndAnExample) {
  const auto p = parse_time(GetParam().text);
  ASSERT_FALSE(p);
  EXPECT_NE(p.error.find(GetParam().why), std::string::npos) << p.error;
  EXPECT_NE(p.error.find("expected a time with its unit such as \"250 ns\""), std::string::npos) << p.error;
}
INSTANTIATE_TEST_SUITE_P(
    Units, ParseTimeRefuses,
    testing::Values(Refused{"", "no number"}, Refused{"ns", "no number"}, Refused{"250", "unit missing"},
                    Refused{"250 ", "unit missing"}, Refused{"-5 ns", "no number"}, Refused{" 5 ns", "no number"},
                    Refused{". ns", "no number"}, Refused{"1e3 ns", "unknown unit \"e3 ns\""},
                    Refused{"5 nS", "unknown unit \"nS\""}, Refused{"5 ns ", "unknown unit"},
                    Refused{"1.2.3 ns", "unknown unit"}, Refused{"0.5 ps", "not a whole number of ps"},
                    Refused{"1.0001 ns", "not a whole number of ps"}, Refused{"5000000 s", "value too large"},
                    Refused{"99999999999999999999999999999999999 s", "number too long"},
                    Refused{"0.0000000000000000000001 s", "number too long"}));

TEST(ParseTime, AHugeNumberNeverWrapsIntoASmallOne) {
  // 2^k seconds for every k up to where the text itself is refused.
  unsigned __int128 v = 1;
  for (int k = 0; k < 126; ++k, v *= 2) {
    std::string digits;
    for (unsigned __int128 x = v; x != 0; x /= 10)
      digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(x % 10)));
    const auto p = parse_time(digits + " s");
    if (k <= 22) EXPECT_EQ(p.value.n, static_cast<std::int64_t>(v) * 1'000'000'000'000);
    else EXPECT_FALSE(p) << digits;
  }
}

TEST(ParseBytes, KnowsBinaryAndDecimalPrefixes) {
  EXPECT_EQ(parse_bytes("64 B").value, 64_B);
  EXPECT_EQ(parse_bytes("4 KiB").value, Bytes{4096});
  EXPECT_EQ(parse_bytes("1.5 KiB").value, Bytes{1536});
  EXPECT_EQ(parse_bytes("1 MiB").value, Bytes{1 << 20});
  EXPECT_EQ(parse_bytes("2 GiB").value, Bytes{2ULL << 30});
  EXPECT_EQ(parse_bytes("1 kB").value, Bytes{1000});
  EXPECT_EQ(parse_bytes("1 MB").value, Bytes{1'000'000});
  EXPECT_FALSE(parse_bytes("1.0001 KiB"));
  EXPECT_FALSE(parse_bytes("4 KB"));
  EXPECT_FALSE(parse_bytes("4096"));
}

TEST(ParseRate, AcceptsBothSpellings) {
  EXPECT_EQ(parse_rate("100 Gb/s").value, 100_Gbps);
  EXPECT_EQ(parse_rate("25 Gbps").value, 25_Gbps);
  EXPECT_EQ(parse_rate("800 Mb/s").value.bps, 800'000'000U);
  EXPECT_EQ(parse_rate("10 kb/s").value.bps, 10'000U);
  EXPECT_EQ(parse_rate("9 b/s").value.bps, 9U);
  EXPECT_FALSE(parse_rate("100 GB/s"));
  EXPECT_FALSE(parse_rate("100"));
}

TEST(ToString, UsesTheLargestUnitWithAtMostThreeDecimals) {
  EXPECT_EQ(to_string(0_ps), "0 ps");
  EXPECT_EQ(to_string(999_ps), "999 ps");
  EXPECT_EQ(to_string(1001_ps), "1.001 ns");
  EXPECT_EQ(to_string(250_ns), "250 ns");
  EXPECT_EQ(to_string(1500_ns), "1.5 us");
  EXPECT_EQ(to_string(1'000'001_ns), "1000.001 us");
  EXPECT_EQ(to_string(2_s), "2 s");
  EXPECT_EQ(to_string(Picos{-1500}), "-1.5 ns");
  EXPECT_EQ(to_string(kNever), "never");
  EXPECT_EQ(to_string(Bytes{4096}), "4 KiB");
  EXPECT_EQ(to_string(Bytes{1536}), "1536 B");
  EXPECT_EQ(to_string(Bytes{0}), "0 B");
  EXPECT_EQ(to_string(100_Gbps), "100 Gb/s");
  EXPECT_EQ(to_string(BitRate{25'781'250'000}), "25781.25 Mb/s");
}

TEST(ToString, ReadsBackToTheSameValue) {
  Rng rng(1, "round trip");
  for (int i = 0; i < 20'000; ++i) {
    const unsigned keep = 1 + rng.below(62);
    std::uint64_t v = (static_cast<std::uint64_t>(rng.next()) << 32 | rng.next()) >> (64 - keep);
    if (rng.chance(0.5)) v = v / 1'000'000 * 1'000'000;
    EXPECT_EQ(parse_time(to_string(Picos{static_cast<std::int64_t>(v)})).value.n, static_cast<std::int64_t>(v));
    EXPECT_EQ(parse_bytes(to_string(Bytes{v})).value.n, v);
    EXPECT_EQ(parse_rate(to_string(BitRate{v})).value.bps, v);
  }
}

}  // namespace
}  // namespace sim
