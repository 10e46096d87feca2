// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

namespace {

using namespace test;

TEST(Boot, CommandsInTheOrderOfTheProbe) {
  Machine m;
  m.run([] {});
  const std::vector<std::uint16_t> head{prm::kEnableHca,   prm::kQueryIssi,   prm::kSetIssi,     prm::kQueryPages,
                                        prm::kManagePages, prm::kManagePages, prm::kQueryHcaCap, prm::kInitHca,
                                        prm::kAllocUar,    prm::kCreateEq,    prm::kCreateEq,    prm::kCreateEq,
                                        prm::kCreateEq};
  ASSERT_GE(m.device.opcodes.size(), head.size());
  EXPECT_TRUE(std::equal(head.begin(), head.end(), m.device.opcodes.begin()));
  EXPECT_EQ(m.device.icm_pages.size(), 600U);
  EXPECT_EQ(m.device.dma_faults, 0U);
}

TEST(Boot, PagesAreDmaAddressesThatTheIommuTranslates) {
  Machine m;
  m.run([] {});
  for (const std::uint64_t page : m.device.icm_pages) {
    const auto phys = m.iommu.translate({page});
    ASSERT_TRUE(phys);
    EXPECT_NE(phys->v, page);
  }
}

TEST(Boot, PassthroughUsesPhysicalAddresses) {
  Machine m(default_config(), true);
  m.run([] {});
  for (const std::uint64_t page : m.device.icm_pages) EXPECT_TRUE(m.memory.contains({page}, 4096));
  EXPECT_FALSE(m.iommu.root);
}

TEST(Boot, EventQueuesHaveTheSizesOfTheDriver) {  // S-EQE-5
  Machine m;
  m.run([] {});
  ASSERT_EQ(m.device.eqs.size(), 4U);  // command, async, one per core
  EXPECT_EQ(m.device.eqs[1].log_size, 8U);
  EXPECT_EQ(m.device.eqs[2].log_size, 13U);
  EXPECT_EQ(m.device.eqs[3].log_size, 11U);
  EXPECT_EQ(m.device.eqs[4].vector, 3U);
  EXPECT_EQ(m.device.eqs[1].mask, 1ULL << prm::kEventCmd);
  EXPECT_EQ(m.device.eqs[3].mask, 1ULL << prm::kEventComp);
  for (const auto& [eqn, eq] : m.device.eqs) EXPECT_TRUE(eq.armed) << eqn;
  EXPECT_EQ(m.kernel->comp_vectors(), 2U);
}

TEST(Boot, RegistrationInItsRealOrderAndNoDeviceBefore) {  // S-DEV-7
  Machine m;
  using S = kernel::RegistrationStep;
  m.run([] {});
  EXPECT_EQ(m.kernel->registration(),
            (std::vector<S>{S::name, S::query, S::caches, S::views, S::registered, S::clients, S::uevent}));
}

TEST(Boot, SourceAddressesAreGivenToTheDevice) {
  Machine m;
  m.run([] {});
  ASSERT_EQ(m.device.roce_addresses.size(), 4U);
  EXPECT_EQ(m.device.roce_addresses[3], *kernel::gid_of_ipv4("10.0.0.1"));
}

TEST(Boot, FailedCommandLeavesNoDevice) {
  Machine m;
  m.device.fail[prm::kInitHca] = prm::kCmdInternalErr;
  int result = 0;
  m.program([&] { result = m.process->open("/dev/infiniband/uverbs0", 2); }).start({});
  m.kernel->start({});
  m.engine.run();
  EXPECT_FALSE(m.kernel->ready());
  EXPECT_EQ(m.kernel->boot_error(), "INIT_HCA failed with errno 5");
  EXPECT_EQ(result, -ENOENT);
}

TEST(Sysfs, WhatLibibverbsReads) {
  Machine m;
  m.run([&] {
    auto& p = *m.process;
    EXPECT_EQ(p.sysfs_read("/sys/class/infiniband_verbs/abi_version"), "6\n");
    EXPECT_EQ(p.sysfs_read("/sys/class/infiniband_verbs/uverbs0/ibdev"), "mlx5_0\n");
    EXPECT_EQ(p.sysfs_read("/sys/class/infiniband_verbs/uverbs0/device/modalias"),
              "pci:v000015B3d00001017sv000015B3sd00000008bc02sc00i00\n");
    EXPECT_EQ(p.sysfs_read("/sys/class/infiniband/mlx5_0/node_guid"), "0200:00ff:fe00:0001\n");
    EXPECT_EQ(p.sysfs_read("/sys/class/infiniband/mlx5_0/fw_ver"), "16.35.2000\n");
    EXPECT_EQ(p.sysfs_read("/sys/class/infiniband/mlx5_0/ports/1/gids/3"), "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
    EXPECT_EQ(p.sysfs_read("/sys/class/infiniband/mlx5_0/ports/1/gids/5"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
    EXPECT_EQ(p.sysfs_read("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/3"), "RoCE v2\n");
    EXPECT_EQ(p.sysfs_read("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/5"), std::nullopt);
    EXPECT_EQ(p.sysfs_read("/sys/class/infiniband/mlx5_0/ports/2/state"), std::nullopt);
    EXPECT_EQ(p.sysfs_list("/sys/class/infiniband"), std::vector<std::string>{"mlx5_0"});
    EXPECT_EQ(p.sysfs_list("/sys/class/infiniband_verbs"), (std::vector<std::string>{"abi_version", "uverbs0"}));
    EXPECT_EQ(p.sysfs_list("/sys/class/infiniband/mlx5_0/ports"), std::vector<std::string>{"1"});
  });
}

TEST(Context, GetContextAnswersWhatLibmlx5Accepts) {
  Machine m;
  m.run([&] {
    Verbs v(m);
    ASSERT_EQ(v.open(), 0);
    const auto& r = v.context.mlx5();
    EXPECT_EQ(v.context.base().num_comp_vectors, 2U);
    EXPECT_EQ(r.qp_tab_size, 1U << 18);
    EXPECT_EQ(r.bf_reg_size, 512U);
    EXPECT_EQ(r.tot_bfregs, 16U);
    EXPECT_EQ(r.cache_line_size, 64U);
    EXPECT_EQ(r.max_sq_desc_sz, 1024);
    EXPECT_EQ(r.max_rq_desc_sz, 512);
    EXPECT_EQ(r.max_send_wqebb, 32768U);
    EXPECT_EQ(r.max_recv_wr, 32768U);
    EXPECT_EQ(r.max_srq_recv_wr, 32767U);
    EXPECT_EQ(r.num_ports, 1);
    EXPECT_EQ(r.cqe_version, 1);
    EXPECT_EQ(r.log_uar_size, 12U);
    EXPECT_EQ(r.num_uars_per_page, 1U);
    EXPECT_EQ(r.num_dyn_bfregs, 512U);
    EXPECT_EQ(r.comp_mask, 0U);
    EXPECT_EQ(m.device.uars.size(), 9U);  // eight pages and the kernel's own
    v.p.exit();
    EXPECT_EQ(m.device.uars.size(), 1U);
  });
}

TEST(Context, UarPagesMapWriteCombiningAndUncached) {
  Machine m;
  m.run([&] {
    Verbs v(m);
    ASSERT_EQ(v.open(), 0);
    const long wc = v.p.mmap(v.fd, 4096, 7 * 4096);
    const long nc = v.p.mmap(v.fd, 4096, (3ULL << 8 | 0) * 4096);
    ASSERT_GT(wc, 0);
    ASSERT_GT(nc, 0);
    const auto t = m.user.translate({static_cast<std::uint64_t>(wc)});
    ASSERT_TRUE(t);
    EXPECT_TRUE(t->mmio);
    EXPECT_EQ(t->type, memory::MemoryType::write_combining);
    EXPECT_EQ(t->phys.v, kBar0 + (prm::kFirstUar + 1 + 7) * 4096ULL);
    EXPECT_EQ(m.user.translate({static_cast<std::uint64_t>(nc)})->type, memory::MemoryType::uncached);
    EXPECT_EQ(v.p.mmap(v.fd, 4096, 8 * 4096), -EINVAL);
    EXPECT_EQ(v.p.mmap(v.fd, 8192, 0), -EINVAL);
    EXPECT_EQ(v.p.mmap(v.fd, 4096, (1ULL << 8) * 4096), -EINVAL);
    EXPECT_EQ(v.p.mmap(v.fd, 4096, (5ULL << 8) * 4096), -EOPNOTSUPP);
    EXPECT_EQ(v.p.munmap({static_cast<std::uint64_t>(wc)}, 4096), 0);
    EXPECT_EQ(v.p.munmap({static_cast<std::uint64_t>(wc)}, 4096), -EINVAL);
  });
}

TEST(Context, CommandHeaderErrors) {
  Machine m;
  m.run([&] {
    Verbs v(m);
    v.fd = v.p.open("/dev/infiniband/uverbs0", 2);
    std::uint32_t h;
    EXPECT_EQ(v.alloc_pd(h), -EINVAL);  // no context yet
    EXPECT_EQ(v.p.close(v.fd), 0);
    ASSERT_EQ(v.open(), 0);
    std::uint64_t out[64];
    struct {
      ib_uverbs_cmd_hdr hdr;
      std::uint64_t response;
    } c{{IB_USER_VERBS_CMD_ALLOC_PD, 4, 2}, reinterpret_cast<std::uint64_t>(out)};
    EXPECT_EQ(v.p.write(v.fd, &c, 4), -EINVAL);
    EXPECT_EQ(v.p.write(v.fd, &c, 12), -EINVAL);  // length is not what the header says
    c.hdr.out_words = 0;
    EXPECT_EQ(v.p.write(v.fd, &c, 16), -ENOSPC);
    c.hdr = {IB_USER_VERBS_CMD_PEEK_CQ, 4, 2};
    EXPECT_EQ(v.p.write(v.fd, &c, 16), -EOPNOTSUPP);
    c.hdr = {0x7f, 4, 2};
    EXPECT_EQ(v.p.write(v.fd, &c, 16), -EINVAL);
    c.hdr = {0x100, 4, 2};
    EXPECT_EQ(v.p.write(v.fd, &c, 16), -EINVAL);
    EXPECT_EQ(v.p.write(99, &c, 16), -EBADF);
    EXPECT_EQ(v.p.write(static_cast<int>(v.context.base().async_fd), &c, 16), -EINVAL);
  });
}

TEST(Context, QueryPortOfRoce) {
  kernel::KernelConfig config = default_config();
  config.netdev.mtu = {1500};
  Machine m(config);
  m.run([&] {
    Verbs v(m);
    ASSERT_EQ(v.open(), 0);
    ib_uverbs_query_port c{};
    ib_uverbs_query_port_resp r{};
    c.port_num = 1;
    ASSERT_EQ(v.send(IB_USER_VERBS_CMD_QUERY_PORT, c, &r), 0);
    EXPECT_EQ(r.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(r.link_layer, IBV_LINK_LAYER_ETHERNET);
    EXPECT_EQ(r.active_mtu, IBV_MTU_1024);
    EXPECT_EQ(r.max_mtu, IBV_MTU_4096);
    EXPECT_EQ(r.gid_tbl_len, 16U);
    EXPECT_EQ(r.pkey_tbl_len, 1);
    for (const std::uint8_t bad : {std::uint8_t{0}, std::uint8_t{2}}) {
      c.port_num = bad;
      EXPECT_EQ(v.send(IB_USER_VERBS_CMD_QUERY_PORT, c, &r), -EINVAL);  // S-OBJ-10
    }
    ib_uverbs_query_device_resp d{};
    ASSERT_EQ(v.send(IB_USER_VERBS_CMD_QUERY_DEVICE, ib_uverbs_query_device{}, &d), 0);
    EXPECT_EQ(d.max_sge, 30U);
    EXPECT_EQ(d.max_cqe, 65535U);
    EXPECT_EQ(d.max_qp_wr, 32768U);
    EXPECT_EQ(d.vendor_part_id, 4119U);
    EXPECT_EQ(d.fw_ver, 16ULL << 32 | 35ULL << 16 | 2000);
  });
}

}  // namespace
