// SPDX-License-Identifier: Apache-2.0
// Opening an mlx5 device: GET_CONTEXT with the driver's request and answer (<rdma/mlx5-abi.h>), UAR mapping, the table of
// BlueFlame registers (S-UAR-4, S-BF-1), the operation tables, PDs. Follows rdma-core 44 with a kernel that
// assigns registers itself (total_bfregs > 0). Not built: dynamic UARs, which need the ioctl ABI; DEVX.
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "verbs_frontend/libibverbs/command.h"
#include "verbs_frontend/mlx5/ah.h"
#include "verbs_frontend/mlx5/domain.h"
#include "verbs_frontend/mlx5/mlx5.h"
#include "verbs_frontend/mlx5/provider.h"
#include "verbs_frontend/mlx5/srq.h"
#include "verbs_frontend/mlx5/traced_call.h"
#include "verbs_frontend/mlx5/verbs.h"
#include "verbs_frontend/mlx5/xrc.h"
#include "verbs_frontend/trace_points.h"

namespace verbs::mlx5 {
namespace {

constexpr std::uint32_t kRegsPerUar = hca::prm::kBfRegsPerUar;  // register numbers per UAR page
constexpr std::uint32_t kUserRegsPerUar = 2;                    // of which programs use these

struct Environment {
  std::uint32_t total = 16, low_latency = 4;
  bool valid = true;
};

/// MLX5_TOTAL_UUARS and MLX5_NUM_LOW_LAT_UUARS; at most 12 registers are shared ones.
Environment register_counts(const ProcessState& s) {
  Environment e;
  if (const char* v = s.getenv("MLX5_TOTAL_UUARS")) {
    const int n = std::atoi(v);
    if (n < 1 || n > 512) e.valid = false;
    e.total = (static_cast<std::uint32_t>(std::max(n, 1)) + 3) & ~3U;
  }
  if (const char* v = s.getenv("MLX5_NUM_LOW_LAT_UUARS")) {
    const int n = std::atoi(v);
    if (n < 0 || static_cast<std::uint32_t>(n) > e.total - 1) e.valid = false;
    e.low_latency = static_cast<std::uint32_t>(std::max(n, 0));
  }
  if (e.total > 12) e.low_latency = std::max(e.low_latency, e.total - 12);
  e.low_latency = std::min(e.low_latency, e.total - 1);
  return e;
}

void unmap_uars(Mlx5Context& c) {
  for (const memory::Va page : c.uar_pages) c.base.syscalls->munmap(page, memory::kPageSize);
  c.uar_pages.clear();
  for (const memory::Va page : c.dynamic_pages) c.base.syscalls->munmap(page, memory::kPageSize);
  c.dynamic_pages.clear();
}

int map_uars(Mlx5Context& c, int fd) {
  const std::uint32_t pages = c.total_bfregs / kUserRegsPerUar;
  for (std::uint32_t i = 0; i < pages; ++i) {
    // Offset = (command << 8 | page index) pages, command 0 = a UAR page of this context.
    const long at = c.base.syscalls->mmap(fd, memory::kPageSize, std::uint64_t{i} * memory::kPageSize);
    if (at < 0) {
      unmap_uars(c);
      return static_cast<int>(-at);
    }
    c.uar_pages.push_back(memory::Va{static_cast<std::uint64_t>(at)});
  }
  return 0;
}

void build_registers(Mlx5Context& c) {
  for (std::uint32_t n = 0; n < c.uar_pages.size() * kRegsPerUar; ++n) {
    auto bf = std::make_unique<BfReg>();
    bf->reg = c.uar_pages[n / kRegsPerUar] + hca::prm::kUarBfBase + std::uint64_t{n % kRegsPerUar} * c.bf_reg_size;
    bf->number = n;
    bf->half_size = n == 0 ? 0 : c.bf_reg_size / 2;
    // Registers are shared from the second one on until the low-latency ones, which serve one QP each.
    const std::uint32_t rank = n / kRegsPerUar * kUserRegsPerUar + n % kRegsPerUar;
    bf->need_lock = !c.single_threaded && n != 0 && rank < c.total_bfregs - c.low_latency_bfregs;
    c.bfregs.push_back(std::move(bf));
  }
}

int query_port_inline(ibv_context* context, std::uint8_t port, ibv_port_attr* attr, std::size_t) {
  return ops_of(context).query_port(context, port, attr);
}

int query_device(ibv_context* context, ibv_device_attr* attr) { return cmd_query_device(context, *attr); }
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr) {
  return cmd_query_port(context, port, *attr);
}

ibv_pd* alloc_pd(ibv_context* context) {
  Command c(IB_USER_VERBS_CMD_ALLOC_PD);
  auto& req = c.add<ib_uverbs_alloc_pd>();
  const auto& resp = c.expect<ib_uverbs_alloc_pd_resp>();
  const auto& driver = c.expect<mlx5_ib_alloc_pd_resp>();
  req.response = c.response_address();
  if (c.issue(*context_of(context).syscalls, context->cmd_fd) != 0) return nullptr;
  return &(new Pd{{context, resp.pd_handle}, driver.pdn})->pd;
}

int dealloc_pd(ibv_pd* pd) {
  if (pd_of(pd).protection != nullptr) return dealloc_parent_domain(pd);
  if (pd_of(pd).users != 0) return EBUSY;
  const int e = cmd_dealloc_pd(pd);
  if (e == 0) delete reinterpret_cast<Pd*>(pd);
  return e;
}

void close_context(ibv_context* context) {
  Mlx5Context& c = mlx5_of(context);
  unmap_uars(c);
  c.dbrs.release(c.space());
  delete &c;
}

const ProviderOps& provider_ops() {
  static const ProviderOps ops = [] {
    ProviderOps o = kDummyOps;
    o.query_device = traced<points::query_device, query_device>;
    o.query_port = traced<points::query_port, query_port>;
    o.alloc_pd = traced<points::alloc_pd, alloc_pd>;
    o.dealloc_pd = traced<points::dealloc_pd, dealloc_pd>;
    o.reg_mr = traced<points::reg_mr, reg_mr>;
    o.rereg_mr = traced<points::rereg_mr, rereg_mr>;
    o.dereg_mr = traced<points::dereg_mr, dereg_mr>;
    o.create_cq = traced<points::create_cq, create_cq>;
    o.create_cq_ex = traced<points::create_cq, create_cq_ex>;
    o.resize_cq = traced<points::resize_cq, resize_cq>;
    o.destroy_cq = traced<points::destroy_cq, destroy_cq>;
    o.cq_event = cq_event;
    o.create_qp = traced<points::create_qp, create_qp>;
    o.create_qp_ex = traced<points::create_qp, create_qp_ex>;
    o.modify_qp = modify_qp;
    o.query_qp = traced<points::query_qp, query_qp>;
    o.destroy_qp = traced<points::destroy_qp, destroy_qp>;
    o.create_srq = traced<points::create_srq, create_srq>;
    o.modify_srq = traced<points::modify_srq, modify_srq>;
    o.query_srq = traced<points::query_srq, query_srq>;
    o.destroy_srq = traced<points::destroy_srq, destroy_srq>;
    o.create_ah = traced<points::create_ah, create_ah>;
    o.attach_mcast = traced<points::attach_mcast, cmd_attach_mcast>;
    o.detach_mcast = traced<points::detach_mcast, cmd_detach_mcast>;
    o.destroy_ah = traced<points::destroy_ah, destroy_ah>;
    o.close = close_context;
    return o;
  }();
  return ops;
}

void install_inline_ops(verbs_context& v) {
  v.context.ops.post_send = post_send;
  v.context.ops.post_recv = post_recv;
  v.context.ops.poll_cq = poll_cq;
  v.context.ops.req_notify_cq = arm_cq;
  v.context.ops.alloc_mw = traced<points::alloc_mw, alloc_mw>;
  v.context.ops.bind_mw = bind_mw;
  v.context.ops.dealloc_mw = traced<points::dealloc_mw, dealloc_mw>;
  v.alloc_null_mr = traced<points::reg_mr, alloc_null_mr>;
  v.modify_cq = traced<points::modify_cq, modify_cq>;
  v.query_port = query_port_inline;
  v.query_device_ex = traced<points::query_device, query_device_ex>;
  v.create_cq_ex = create_cq_ex_checked;
  v.create_qp_ex = traced<points::create_qp, create_qp_ex>;
  v.context.ops.post_srq_recv = post_srq_recv;
  v.create_srq_ex = traced<points::create_srq, create_srq_ex>;
  v.get_srq_num = get_srq_num;
  v.open_xrcd = traced<points::open_xrcd, open_xrcd>;
  v.close_xrcd = traced<points::close_xrcd, close_xrcd>;
  v.open_qp = traced<points::open_qp, open_qp>;
  v.alloc_td = traced<points::alloc_td, alloc_td>;
  v.dealloc_td = traced<points::dealloc_td, dealloc_td>;
  v.alloc_parent_domain = traced<points::alloc_parent_domain, alloc_parent_domain>;
}

int get_context(Mlx5Context& c, const Environment& e) {
  Command cmd(IB_USER_VERBS_CMD_GET_CONTEXT);
  auto& req = cmd.add<ib_uverbs_get_context>();
  auto& driver = cmd.add<mlx5_ib_alloc_ucontext_req_v2>();
  const auto& resp = cmd.expect<ib_uverbs_get_context_resp>();
  const auto& r = cmd.expect<mlx5_ib_alloc_ucontext_resp>();
  req.response = cmd.response_address();
  driver.total_num_bfregs = e.total;
  driver.num_low_latency_bfregs = e.low_latency;
  driver.max_cqe_version = 1;
  driver.lib_caps = MLX5_LIB_CAP_4K_UAR;
  ibv_context& context = c.base.vctx.context;
  if (const int error = cmd.issue(*c.base.syscalls, context.cmd_fd)) return error;
  context.async_fd = static_cast<int>(resp.async_fd);
  context.num_comp_vectors = static_cast<int>(resp.num_comp_vectors);
  c.max_sq_desc = r.max_sq_desc_sz;
  c.max_rq_desc = r.max_rq_desc_sz;
  c.max_send_wqebb = r.max_send_wqebb;
  c.max_recv_wr = r.max_recv_wr;
  c.max_srq_recv_wr = r.max_srq_recv_wr;
  c.bf_reg_size = r.bf_reg_size;
  c.total_bfregs = r.tot_bfregs;
  c.dynamic_bfregs = r.num_dyn_bfregs;
  c.low_latency_bfregs = e.low_latency;
  c.cache_line = std::max<std::size_t>(r.cache_line_size, 64);
  c.cqe_version = r.cqe_version;
  c.num_ports = r.num_ports;
  if (r.comp_mask & MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_DUMP_FILL_MKEY) {
    c.null_key = r.dump_fill_mkey;
    c.has_null_key = true;
  }
  // Refused: a kernel that leaves the assignment of registers to the program, by the ioctl ABI.
  if (c.total_bfregs == 0) return EOPNOTSUPP;
  return 0;
}

verbs::Context* alloc_context(Device& device, kernel::Syscalls& syscalls, int cmd_fd) {
  const ProcessState& s = process();
  const Environment e = register_counts(s);
  if (!e.valid) return fail(EINVAL);
  auto c = std::make_unique<Mlx5Context>();
  prepare_context(c->base, device, syscalls, cmd_fd, provider_ops());
  c->single_threaded = set(s.getenv("MLX5_SINGLE_THREADED"));
  c->shut_up_bf = set(s.getenv("MLX5_SHUT_UP_BF"));
  const char* prefer = s.getenv("MLX5_POST_SEND_PREFER_BF");
  c->prefer_bf = prefer == nullptr || set(prefer);
  install_inline_ops(c->base.vctx);
  int error = get_context(*c, e);
  if (error == 0) error = map_uars(*c, cmd_fd);
  if (error != 0) {
    delete c->base.vctx.priv;
    return fail(error);
  }
  build_registers(*c);
  ibv_device_attr attr{};
  if (cmd_query_device(&c->base.vctx.context, attr) == 0) c->atomic_cap = attr.atomic_cap;
  return &c.release()->base;
}

bool matches(std::string_view modalias) { return modalias.starts_with("pci:v000015B3"); }

}  // namespace

const Provider kProvider{"mlx5", matches, alloc_context};

std::uint32_t Mlx5Context::take_user_index(Resource resource) {
  const auto slot = std::ranges::find_if(by_user_index, [](const Resource& r) { return !r.used(); });
  const auto index = static_cast<std::uint32_t>(slot - by_user_index.begin());
  if (slot == by_user_index.end()) by_user_index.push_back(resource);
  else *slot = resource;
  return index;
}

}  // namespace verbs::mlx5
