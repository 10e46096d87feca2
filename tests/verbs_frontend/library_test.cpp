// SPDX-License-Identifier: Apache-2.0
// The library's own behaviour: discovery, queries, return conventions, reference counts.
#include <gtest/gtest.h>

#include <algorithm>

#include "golden_harness.h"

namespace verbs::test {
namespace {

/// Runs `body` as a program with an open device.
void with_device(const std::function<void(Bench&)>& body) {
  Machine machine;
  machine.program([&] {
    Bench bench(machine, Json::object());
    body(bench);
    for (const std::string& p : bench.problems) ADD_FAILURE() << p;
  });
  machine.run();
}

TEST(DeviceList, ShowsTheDevicesThatAProviderTakes) {
  with_device([](Bench& b) {
    int n = 0;
    ibv_device** list = ibv_get_device_list(&n);
    ASSERT_EQ(n, 1);
    EXPECT_STREQ(ibv_get_device_name(list[0]), "mlx5_0");
    EXPECT_EQ(list[1], nullptr);
    EXPECT_EQ(ibv_get_device_guid(list[0]), mlx5::be64(0x0002c90300000010));
    EXPECT_EQ(list[0]->node_type, IBV_NODE_CA);
    ibv_free_device_list(list);
    EXPECT_STREQ(b.context->device->name, "mlx5_0") << "an open device survives the list (S-OBJ-5)";
  });
}

TEST(Queries, PortOutOfRangeIsEinvalAndGidsComeFromSysfs) {
  with_device([](Bench& b) {
    ibv_port_attr port{};
    EXPECT_EQ(::___ibv_query_port(b.context, 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(::___ibv_query_port(b.context, 9, &port), EINVAL);
    ibv_gid gid{};
    EXPECT_EQ(ibv_query_gid(b.context, 1, 1, &gid), 0);
    EXPECT_EQ(gid.raw[0], 0xfe);
    EXPECT_EQ(gid.raw[15], 0x01);
    EXPECT_EQ(ibv_query_gid(b.context, 1, 4, &gid), 0) << "an empty entry reads as zero (S-OBJ-11)";
    EXPECT_TRUE(std::all_of(std::begin(gid.raw), std::end(gid.raw), [](auto v) { return v == 0; }));
    EXPECT_EQ(ibv_query_gid(b.context, 1, 99, &gid), -1);
    ibv_gid_entry entry{};
    b.kernel.link_layer = 2;
    EXPECT_EQ(ibv_query_gid_ex(b.context, 1, 1, &entry, 0), 0);
    EXPECT_EQ(entry.gid_type, static_cast<std::uint32_t>(IBV_GID_TYPE_ROCE_V2));
    EXPECT_EQ(ibv_query_gid_ex(b.context, 1, 4, &entry, 0), ENODATA);
    __be16 pkey = 0;
    EXPECT_EQ(ibv_query_pkey(b.context, 1, 0, &pkey), 0);
    EXPECT_EQ(pkey, 0xffff);
    EXPECT_EQ(ibv_query_pkey(b.context, 1, 5, &pkey), -1);
  });
}

TEST(Errors, KernelErrnoReachesTheCaller) {
  with_device([](Bench& b) {
    b.kernel.fail_next = ENOMEM;
    errno = 0;
    EXPECT_EQ(ibv_alloc_pd(b.context), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    b.kernel.fail_next = EBUSY;
    EXPECT_EQ(ibv_dealloc_pd(b.pd), EBUSY);
  });
}

TEST(Errors, WhatIsNotBuiltIsRefused) {
  with_device([](Bench& b) {
    ibv_srq_init_attr srq{};
    b.machine.state.env["MLX5_SRQ_SIGNATURE"] = "1";
    errno = 0;
    EXPECT_EQ(ibv_create_srq(b.pd, &srq), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    errno = 0;
    EXPECT_EQ(ibv_alloc_mw(b.pd, IBV_MW_TYPE_1), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_td_init_attr td{};
    EXPECT_EQ(ibv_alloc_td(b.context, &td), nullptr);
  });
}

int calls = 0;
ibv_pd* counted_alloc_pd(ibv_context*) {
  ++calls;
  return nullptr;
}
int counted_poll(ibv_cq*, int, ibv_wc*) {
  ++calls;
  return 0;
}
int counted_modify_cq(ibv_cq*, ibv_modify_cq_attr*) {
  ++calls;
  return 0;
}

TEST(Dispatch, ThreeRoutesLeadIntoTheProvider_S_DEV_3) {
  with_device([](Bench& b) {
    Context& c = context_of(b.context);
    b.send_cq = ibv_create_cq(b.context, 15, nullptr, nullptr, 0);

    // An exported function goes through the library's private table, which a program does not see.
    const ProviderOps* const provider = c.ops;
    ProviderOps mine = *provider;
    mine.alloc_pd = &counted_alloc_pd;
    c.ops = &mine;
    calls = 0;
    EXPECT_EQ(ibv_alloc_pd(b.context), nullptr);
    EXPECT_EQ(calls, 1);
    c.ops = provider;

    // The data path goes through the table in the context, which is ABI.
    const auto poll = b.context->ops.poll_cq;
    b.context->ops.poll_cq = &counted_poll;
    ibv_wc wc{};
    EXPECT_EQ(ibv_poll_cq(b.send_cq, 1, &wc), 0);
    EXPECT_EQ(calls, 2);
    b.context->ops.poll_cq = poll;

    // An extended call goes through the extended context, if there is one, it is large enough, and it has the function.
    const auto modify = c.vctx.modify_cq;
    c.vctx.modify_cq = &counted_modify_cq;
    ibv_modify_cq_attr attr{IBV_CQ_ATTR_MODERATE, {1, 1}};
    EXPECT_EQ(ibv_modify_cq(b.send_cq, &attr), 0);
    EXPECT_EQ(calls, 3);
    const std::size_t size = c.vctx.sz;
    c.vctx.sz = sizeof(verbs_context) - offsetof(verbs_context, modify_cq) - 1;
    EXPECT_EQ(ibv_modify_cq(b.send_cq, &attr), EOPNOTSUPP) << "a library that is older than the function";
    c.vctx.sz = size;
    b.context->abi_compat = nullptr;
    EXPECT_EQ(ibv_modify_cq(b.send_cq, &attr), EOPNOTSUPP) << "a context without the marker";
    b.context->abi_compat = __VERBS_ABI_IS_EXTENDED;
    c.vctx.modify_cq = nullptr;
    EXPECT_EQ(ibv_modify_cq(b.send_cq, &attr), EOPNOTSUPP) << "a provider that lacks it";
    EXPECT_EQ(calls, 3);
    c.vctx.modify_cq = modify;
    EXPECT_EQ(ibv_destroy_cq(b.send_cq), 0);
    b.send_cq = nullptr;
  });
}

TEST(CompChannel, IsBusyWhileACqUsesIt) {
  with_device([](Bench& b) {
    ibv_comp_channel* channel = ibv_create_comp_channel(b.context);
    b.send_cq = ibv_create_cq(b.context, 15, nullptr, channel, 0);
    EXPECT_EQ(b.kernel.cq_request.comp_channel, channel->fd);
    EXPECT_EQ(ibv_destroy_comp_channel(channel), EBUSY);
    EXPECT_EQ(ibv_destroy_cq(b.send_cq), 0);
    b.send_cq = nullptr;
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
  });
}

TEST(DestroyCq, WaitsUntilAllEventsAreAcknowledged) {
  Machine machine;
  ibv_cq* cq = nullptr;
  sim::Picos destroyed{0}, acked{0};
  bool ready = false;
  machine.program([&] {
    Bench bench(machine, Json::object());
    cq = ibv_create_cq(bench.context, 15, nullptr, nullptr, 0);
    bench.kernel.comp_events_reported = 2;
    ready = true;
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    destroyed = cpu::current().now();
  });
  machine.program([&] {
    cpu::current().sleep(sim::Picos{100'000'000});
    ASSERT_TRUE(ready);
    ibv_ack_cq_events(cq, 1);
    cpu::current().sleep(sim::Picos{100'000'000});
    acked = cpu::current().now();
    ibv_ack_cq_events(cq, 1);
  });
  machine.run();
  EXPECT_GE(destroyed.n, acked.n);
  EXPECT_GT(acked.n, 0);
}

TEST(Environment, MoreRegistersAreAskedForByVariable) {
  Machine machine;
  machine.program([&] {
    Bench bench(machine, Json{{"qp", {{"env", {{"MLX5_TOTAL_UUARS", "32"}}}}}});
    EXPECT_EQ(bench.kernel.context_request.total_num_bfregs, 32u);
    EXPECT_EQ(bench.kernel.context_request.num_low_latency_bfregs, 20u);
    EXPECT_EQ(bench.kernel.uar_pages.size(), 16u);
  });
  machine.run();
}

}  // namespace
}  // namespace verbs::test
