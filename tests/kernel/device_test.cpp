// SPDX-License-Identifier: Apache-2.0
#include "kernel/core/device.h"

#include "kernel/core/verbs.h"
#include "kernel/mlx5/mlx5_ib.h"
#include "machine.h"

namespace {

using namespace test;
using kernel::Device;
using kernel::DeviceOps;

int first_dealloc(kernel::Pd&) { return 1; }
int second_dealloc(kernel::Pd&) { return 2; }
int second_destroy(kernel::Qp&) { return 2; }

TEST(DeviceOps, TheFirstTableWins_S_DEV_10) {
  Machine m;
  Device device(*m.kernel);
  DeviceOps first, second;
  first.dealloc_pd = &first_dealloc;
  second.dealloc_pd = &second_dealloc;
  second.destroy_qp = &second_destroy;
  device.set_ops(first);
  device.set_ops(second);
  EXPECT_EQ(device.ops.dealloc_pd, &first_dealloc);
  EXPECT_EQ(device.ops.destroy_qp, &second_destroy);  // was still empty
  device.set_ops(DeviceOps{});
  EXPECT_EQ(device.ops.destroy_qp, &second_destroy);
}

TEST(DeviceOps, AMissingRequiredCallbackIsNamed) {
  Machine m;
  Device device(*m.kernel);
  EXPECT_STREQ(device.missing_op(), "query_device");
  kernel::mlx5_ib::set_device_ops(device, kernel::DeviceCaps{});
  EXPECT_EQ(device.missing_op(), nullptr);
  device.ops.destroy_cq = nullptr;
  EXPECT_STREQ(device.missing_op(), "destroy_cq");
}

TEST(DeviceOps, XrcIsThereWhenTheDeviceHasIt) {
  Machine m;
  Device with(*m.kernel), without(*m.kernel);
  kernel::DeviceCaps caps;
  kernel::mlx5_ib::set_device_ops(without, caps);
  caps.log_max_xrcd = 10;
  kernel::mlx5_ib::set_device_ops(with, caps);
  EXPECT_EQ(without.ops.alloc_xrcd, nullptr);
  EXPECT_NE(with.ops.alloc_xrcd, nullptr);
}

TEST(Core, AKernelConsumerHasAPdOfItsOwn) {
  Machine m;
  m.run([&] {
    const kernel::ResourceOwner me{0, "[test]"};
    std::unique_ptr<kernel::Pd> pd;
    ASSERT_EQ(kernel::ib_alloc_pd(m.kernel->device(), kernel::Consumer(me), nullptr, pd), 0);
    EXPECT_EQ(pd->ucontext, nullptr);
    EXPECT_EQ(m.device.pds.count(pd->pdn), 1U);
    ASSERT_EQ(m.kernel->device().objects(kernel::ObjectType::pd).size(), 1U);
    EXPECT_EQ(m.kernel->device().objects(kernel::ObjectType::pd)[0]->owner->comm, "[test]");
    ++pd->usecnt;
    EXPECT_EQ(kernel::ib_dealloc_pd(*pd), -EBUSY);
    --pd->usecnt;
    EXPECT_EQ(kernel::ib_dealloc_pd(*pd), 0);
    EXPECT_TRUE(m.kernel->device().objects(kernel::ObjectType::pd).empty());
    EXPECT_EQ(m.device.pds.size(), 0U);
  });
}

}  // namespace
