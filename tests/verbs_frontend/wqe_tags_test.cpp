// SPDX-License-Identifier: Apache-2.0
#include "sim/wqe_tags.h"

#include <gtest/gtest.h>

namespace {

TEST(WqeTags, AnIdIsFoundUnderItsHostQueueAndIndex) {
  sim::WqeTags tags;
  tags.sq.of(0, 0x123).reserve(64);
  tags.sq.publish(0, 0x123, 5, 77);
  EXPECT_EQ(tags.sq.find(0, 0x123, 5), 77u);
  EXPECT_EQ(tags.sq.find(1, 0x123, 5), 0u);
  EXPECT_EQ(tags.cq.find(0, 0x123, 5), 0u);
}

TEST(WqeTags, IndexesWrapWithTheRing) {
  sim::WqeTags tags;
  sim::Tags& ring = tags.sq.of(0, 1);
  ring.reserve(64);
  ring.publish(0xffff, 9);
  EXPECT_EQ(ring.find(63), 9u);
  ring.publish(63, 10);
  EXPECT_EQ(ring.find(0xffff), 10u);
}

TEST(WqeTags, AHandleStaysValidWhenTheQueueIsForgottenOrGrows) {
  sim::WqeTags tags;
  sim::Tags* const handle = &tags.sq.of(3, 4);
  handle->publish(1, 5);
  tags.sq.forget(3, 4);
  EXPECT_EQ(handle->find(1), 0u);
  tags.sq.of(3, 4).reserve(4096);
  EXPECT_EQ(&tags.sq.of(3, 4), handle);
  handle->publish(4095, 6);
  EXPECT_EQ(tags.sq.find(3, 4, 4095), 6u);
}

}  // namespace
