// SPDX-License-Identifier: Apache-2.0
#include "kernel/core/qp_state.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "hca/prm.h"

namespace {

using kernel::modify_allowed;
using kernel::transition;

constexpr std::array<ibv_qp_state, 7> kStates{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                              IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};
constexpr std::array<ibv_qp_type, 3> kTypes{IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

// S-QP-3, row = from, column = to, in the order of kStates.
constexpr std::array<const char*, 7> kMatrix{"XX.....", "XXX...X", "X..X..X", "X..XX.X",
                                             "X..XX.X", "X..X..X", "X.....X"};

TEST(QpState, A10_MatrixOfAllPairsForEachType) {
  for (const ibv_qp_type type : kTypes)
    for (std::size_t from = 0; from < 7; ++from)
      for (std::size_t to = 0; to < 7; ++to)
        EXPECT_EQ(transition(type, kStates[from], kStates[to]).has_value(), kMatrix[from][to] == 'X')
            << "type " << type << " from " << from << " to " << to;
}

TEST(QpState, A11_EachRequiredBitIsNeededAndEachForeignBitIsRefused) {
  for (const ibv_qp_type type : kTypes)
    for (const ibv_qp_state from : kStates)
      for (const ibv_qp_state to : kStates) {
        const auto m = transition(type, from, to);
        if (!m) continue;
        const std::uint32_t base = m->required | IBV_QP_STATE;
        EXPECT_TRUE(modify_allowed(type, from, to, base));
        for (unsigned bit = 0; bit <= 25; ++bit) {
          const std::uint32_t b = 1U << bit;
          if ((m->required & b) != 0) {
            EXPECT_FALSE(modify_allowed(type, from, to, base & ~b)) << from << "->" << to << " without " << bit;
          }
          const bool known = (b & (base | m->optional)) != 0;
          bool expected = known;
          if (b == IBV_QP_CUR_STATE) expected = known && from >= IBV_QPS_RTR && from <= IBV_QPS_SQE;
          EXPECT_EQ(modify_allowed(type, from, to, base | b), expected)
              << "type " << type << " " << from << "->" << to << " with bit " << bit;
        }
      }
}

TEST(QpState, MasksOfTheReferenceTable) {
  const auto rc_rtr = *transition(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR);
  EXPECT_EQ(rc_rtr.required, 0x80U | 0x100U | 0x100000U | 0x1000U | 0x20000U | 0x8000U);
  const auto rc_rts = *transition(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS);
  EXPECT_EQ(rc_rts.required, 0x200U | 0x400U | 0x800U | 0x10000U | 0x2000U);
  EXPECT_EQ(rc_rts.optional, 2U | 0x4000U | 8U | 0x8000U | 0x40000U);
  EXPECT_EQ(transition(IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT)->required, 0x10U | 0x20U | 0x40U);
  EXPECT_EQ(transition(IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR)->required, 0x80U | 0x100U | 0x100000U | 0x1000U);
  EXPECT_EQ(transition(IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR)->required, 0U);
  EXPECT_EQ(transition(IBV_QPT_RC, IBV_QPS_SQE, IBV_QPS_RTS)->optional, 0U);
  EXPECT_EQ(transition(IBV_QPT_UD, IBV_QPS_SQE, IBV_QPS_RTS)->optional, 2U | 0x40U);
}

TEST(QpState, MaskZeroIsANoOpInRtsAndAnErrorInRtr) {  // S-QP-5
  EXPECT_TRUE(modify_allowed(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0));
  EXPECT_TRUE(modify_allowed(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0));
  EXPECT_FALSE(modify_allowed(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTR, 0));
}

TEST(QpState, CapIsNeverAccepted) {  // S-QP-14
  for (const ibv_qp_state from : kStates)
    for (const ibv_qp_state to : kStates)
      if (const auto m = transition(IBV_QPT_RC, from, to)) {
        EXPECT_FALSE(modify_allowed(IBV_QPT_RC, from, to, m->required | IBV_QP_STATE | IBV_QP_CAP));
      }
}

TEST(QpState, EachTransitionHasADeviceCommand) {
  for (const ibv_qp_state from : kStates)
    for (const ibv_qp_state to : kStates)
      if (transition(IBV_QPT_RC, from, to)) {
        EXPECT_TRUE(kernel::device_command(from, to).has_value()) << from << "->" << to;
      }
}

TEST(QpState, DeviceTakesOnlyOptionalAttributes) {
  namespace prm = hca::prm;
  const std::uint32_t access = prm::kOptRre | prm::kOptRae | prm::kOptRwe;
  EXPECT_EQ(kernel::device_opt_mask(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
                                    IBV_QP_AV | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            access);
  EXPECT_EQ(kernel::device_opt_mask(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_MIN_RNR_TIMER | IBV_QP_TIMEOUT),
            prm::kOptRnrTimeout);
  EXPECT_EQ(kernel::device_opt_mask(IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS), prm::kOptRwe);
  EXPECT_EQ(kernel::device_opt_mask(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_ACCESS_FLAGS), 0U);
}

}  // namespace
