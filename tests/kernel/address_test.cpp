// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>

#include "kernel/core/gid_table.h"
#include "kernel/dma_map.h"
#include "kernel/mlx5/bfreg.h"
#include "kernel/mlx5/command.h"

namespace {

TEST(Gid, Ipv4MappedAndLinkLocal) {
  EXPECT_EQ(kernel::to_string(*kernel::gid_of_ipv4("10.0.0.1")), "0000:0000:0000:0000:0000:ffff:0a00:0001");
  EXPECT_EQ(kernel::to_string(kernel::link_local_gid(0x0200'0000'0001ULL)), "fe80:0000:0000:0000:0000:00ff:fe00:0001");
  for (const char* bad : {"", "10.0.0", "10.0.0.256", "10.0.0.1x", "10..0.1", "10.0.0.1.2", "host"})
    EXPECT_FALSE(kernel::gid_of_ipv4(bad)) << bad;
}

TEST(Gid, TableHoldsBothRoceVersionsOfEachAddress) {
  kernel::GidTable t(16);
  t.fill(0x0200'0000'0001ULL, kernel::gid_of_ipv4("10.0.0.1"));
  EXPECT_EQ(t.at(0).gid, t.at(1).gid);
  EXPECT_EQ(t.at(0).type, kernel::GidType::roce_v1);
  EXPECT_EQ(t.at(1).type, kernel::GidType::roce_v2);
  EXPECT_EQ(t.at(3).gid, *kernel::gid_of_ipv4("10.0.0.1"));
  EXPECT_EQ(t.at(3).type, kernel::GidType::roce_v2);
  EXPECT_TRUE(t.usable(3));
  EXPECT_FALSE(t.usable(4));
  EXPECT_FALSE(t.usable(16));
}

TEST(Mtu, LargestCodeThatFitsTheEthernetMtu) {  // S-PKT-7
  EXPECT_EQ(kernel::rdma_mtu(1500), 3);
  EXPECT_EQ(kernel::rdma_mtu(4200), 5);
  EXPECT_EQ(kernel::rdma_mtu(9000), 5);
  EXPECT_EQ(kernel::rdma_mtu(4191), 4);
  EXPECT_EQ(kernel::rdma_mtu(300), 0);
}

TEST(UdpSourcePort, HashOfTheQpNumbersWhenThereIsNoFlowLabel) {  // S-ROCE-2
  EXPECT_EQ(kernel::udp_source_port(0, 0x101, 0x102), 0xC306);
  EXPECT_EQ(kernel::udp_source_port(0, 0x102, 0x101), 0xC306);
  EXPECT_EQ(kernel::udp_source_port(0x12345, 1, 2), 0xE341);
}

TEST(Bfreg, LegacyAssignmentOfSixteenRegisters) {  // S-UAR-4
  kernel::BfregPool pool;
  ASSERT_EQ(pool.init(16, 4, true), 0);
  EXPECT_EQ(pool.pages(), 8U);
  for (const std::uint32_t expected : {12U, 13U, 14U, 15U, 1U, 2U, 3U}) EXPECT_EQ(pool.take(), expected);
  EXPECT_EQ(kernel::BfregPool::user_index(12), 24U);
  EXPECT_EQ(kernel::BfregPool::user_index(13), 25U);
  EXPECT_EQ(kernel::BfregPool::user_index(14), 28U);
  EXPECT_EQ(kernel::BfregPool::user_index(11), 21U);
  pool.give(13);
  EXPECT_EQ(pool.take(), 13U);
  for (int i = 0; i < 8; ++i) pool.take();
  EXPECT_EQ(pool.take(), 1U);  // all shared ones have a user: the least used
}

TEST(Bfreg, RefusedSizes) {
  kernel::BfregPool pool;
  EXPECT_EQ(pool.init(0, 0, true), -EINVAL);
  EXPECT_EQ(pool.init(16, 16, true), -EINVAL);
  EXPECT_EQ(pool.init(513, 4, true), -ENOMEM);
  ASSERT_EQ(pool.init(3, 1, true), 0);
  EXPECT_EQ(pool.total(), 4U);
  ASSERT_EQ(pool.init(16, 4, false), 0);  // version 1 of the request: everybody on register 0
  EXPECT_EQ(pool.take(), 0U);
  EXPECT_EQ(pool.take(), 0U);
}

TEST(Iova, RangesAreReusedAndNeverOverlap) {
  kernel::IovaAllocator a(1ULL << 40);
  const auto x = a.take(3), y = a.take(1);
  EXPECT_EQ(x.v, (1ULL << 40) - 3 * 4096);
  EXPECT_EQ(y.v, x.v - 4096);
  a.give(x, 3);
  EXPECT_NE(a.take(1).v, x.v);
  EXPECT_EQ(a.take(3).v, x.v);
  EXPECT_EQ(a.pages_out(), 5U);
}

TEST(CommandStatus, ErrnoOfEachStatus) {
  namespace prm = hca::prm;
  EXPECT_EQ(kernel::errno_of_status(prm::kCmdOk), 0);
  EXPECT_EQ(kernel::errno_of_status(prm::kCmdInternalErr), -EIO);
  EXPECT_EQ(kernel::errno_of_status(prm::kCmdBadOp), -EINVAL);
  EXPECT_EQ(kernel::errno_of_status(prm::kCmdResBusy), -EBUSY);
  EXPECT_EQ(kernel::errno_of_status(prm::kCmdLimit), -ENOMEM);
  EXPECT_EQ(kernel::errno_of_status(prm::kCmdNoRes), -EAGAIN);
  EXPECT_EQ(kernel::errno_of_status(prm::kCmdBadQpState), -EINVAL);
  EXPECT_EQ(kernel::errno_of_status(prm::kCmdBadInLen), -EIO);
}

}  // namespace
