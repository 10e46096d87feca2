// SPDX-License-Identifier: Apache-2.0
#include "memory/address.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace memory {
namespace {

template <class A, class B>
constexpr bool kApart = !std::is_convertible_v<A, B> && !std::is_convertible_v<B, A> && !std::is_assignable_v<A&, B> &&
                        !std::is_constructible_v<A, B>;
static_assert(kApart<Va, MrAddr> && kApart<Va, Iova> && kApart<Va, Phys>);
static_assert(kApart<MrAddr, Iova> && kApart<MrAddr, Phys> && kApart<Iova, Phys>);
static_assert(!std::is_convertible_v<std::uint64_t, Phys> && !std::is_convertible_v<Phys, std::uint64_t>);

TEST(Address, ArithmeticStaysInItsSpace) {
  static_assert(std::is_same_v<decltype(Va{1} + 2), Va>);
  EXPECT_EQ((Va{0x1FFF} + 2).v, 0x2001U);
  EXPECT_EQ(Va{0x3000} - Va{0x1001}, 0x1FFFU);
  EXPECT_EQ(Phys{0x12345}.page(), Phys{0x12000});
  EXPECT_EQ(Phys{0x12345}.offset(), 0x345U);
  EXPECT_LT(Iova{1}, Iova{2});
}

}  // namespace
}  // namespace memory
