// SPDX-License-Identifier: Apache-2.0
// Device discovery and opening, as libibverbs does it from sysfs: /sys/class/infiniband_verbs/uverbsN names the
// InfiniBand device, its modalias selects the provider (S-DEV-1, S-DEV-2). A device is kept for the life of the process,
// so an opened one survives ibv_free_device_list (S-OBJ-5). Not modelled: RDMA netlink, provider plug-ins.
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <span>

#include "cpu/call_span.h"
#include "hca/prm.h"
#include "verbs_frontend/libibverbs/provider.h"
#include "verbs_frontend/libibverbs/sysfs.h"
#include "verbs_frontend/mlx5/provider.h"
#include "verbs_frontend/process_state.h"
#include "verbs_frontend/trace_points.h"

namespace verbs {
namespace {

constexpr std::string_view kVerbsClass = "/sys/class/infiniband_verbs/";
constexpr std::string_view kIbClass = "/sys/class/infiniband/";

const Provider* const kProviders[] = {&mlx5::kProvider};

template <std::size_t N>
void put(char (&field)[N], std::string_view text) {
  const std::size_t n = text.copy(field, N - 1);
  field[n] = '\0';
}

/// The device behind a uverbs node, nullptr if no provider wants it.
std::shared_ptr<Device> discover(kernel::Syscalls& k, const std::string& uverbs) {
  const std::string node = std::string(kVerbsClass) + uverbs;
  const auto ibdev = sysfs_line(k, node + "/ibdev");
  if (!ibdev) return nullptr;
  const std::string ib = std::string(kIbClass) + *ibdev;
  auto modalias = sysfs_line(k, ib + "/device/modalias");
  if (!modalias) modalias = sysfs_line(k, node + "/device/modalias");
  const auto provider =
      std::ranges::find_if(kProviders, [&](const Provider* p) { return p->matches(modalias.value_or("")); });
  if (provider == std::end(kProviders)) return nullptr;

  auto d = std::make_shared<Device>();
  d->uverbs = uverbs;
  d->provider = *provider;
  d->dev = {};
  d->dev.node_type = static_cast<ibv_node_type>(std::atoi(sysfs_line(k, ib + "/node_type").value_or("1").c_str()));
  d->dev.transport_type = IBV_TRANSPORT_IB;
  put(d->dev.name, *ibdev);
  put(d->dev.dev_name, uverbs);
  put(d->dev.dev_path, node);
  put(d->dev.ibdev_path, ib);
  return d;
}

ibv_context* open(Device& d) {
  kernel::Syscalls& k = *process().syscalls;
  const int fd = k.open("/dev/infiniband/" + d.uverbs, O_RDWR | O_CLOEXEC);
  if (fd < 0) return fail(-fd);
  Context* c = d.provider->alloc_context(d, k, fd);
  if (c == nullptr) {
    const int error = errno;
    k.close(fd);
    return fail(error);
  }
  process().contexts.push_back(&c->vctx.context);
  return &c->vctx.context;
}

}  // namespace

void prepare_context(Context& c, Device& device, kernel::Syscalls& syscalls, int cmd_fd, const ProviderOps& ops) {
  c.ops = &ops;
  c.device = &device;
  c.syscalls = &syscalls;
  c.vctx = {};
  c.vctx.sz = sizeof c.vctx;
  c.vctx.priv = new verbs_ex_private{&ops};
  c.vctx.context.device = &device.dev;
  c.vctx.context.cmd_fd = cmd_fd;
  c.vctx.context.async_fd = -1;
  c.vctx.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  fill_dummy_ops(c.vctx);
}

}  // namespace verbs

using verbs::process;

extern "C" {

struct ibv_device** ibv_get_device_list(int* num_devices) {
  if (num_devices != nullptr) *num_devices = 0;
  verbs::ProcessState& state = process();
  kernel::Syscalls& k = *state.syscalls;
  if (!verbs::sysfs_line(k, std::string(verbs::kVerbsClass) + "abi_version")) return verbs::fail(ENOSYS);
  std::vector<std::string> nodes = k.sysfs_list("/sys/class/infiniband_verbs");
  std::ranges::sort(nodes);
  std::vector<ibv_device*> found;
  for (const std::string& node : nodes) {
    if (!node.starts_with("uverbs")) continue;
    std::shared_ptr<verbs::Device>& known = state.devices[node];
    if (!known) known = verbs::discover(k, node);
    if (known) found.push_back(&known->dev);
  }
  auto** list = new ibv_device*[found.size() + 1]();
  std::ranges::copy(found, list);
  if (num_devices != nullptr) *num_devices = static_cast<int>(found.size());
  return list;
}

void ibv_free_device_list(struct ibv_device** list) { delete[] list; }

const char* ibv_get_device_name(struct ibv_device* device) { return device->name; }

int ibv_get_device_index(struct ibv_device*) { return -1; }

__be64 ibv_get_device_guid(struct ibv_device* device) {
  const auto text = verbs::sysfs_line(*process().syscalls, std::string(device->ibdev_path) + "/node_guid");
  std::array<std::uint16_t, 4> groups{};
  if (!text || !verbs::parse_groups(*text, groups)) return 0;
  std::uint64_t guid = 0;
  for (const std::uint16_t g : groups) guid = guid << 16 | g;
  return hca::prm::be64(guid);
}

struct ibv_context* ibv_open_device(struct ibv_device* device) {
  cpu::CallSpan call(cpu::current(), verbs::points::open_device);
  ibv_context* const context = verbs::open(*reinterpret_cast<verbs::Device*>(device));
  call.end(0, context != nullptr ? 0 : errno);
  return context;
}

int ibv_close_device(struct ibv_context* context) {
  cpu::CallSpan call(cpu::current(), verbs::points::close_device);
  verbs::Context& c = verbs::context_of(context);
  kernel::Syscalls& k = *c.syscalls;
  const int async_fd = context->async_fd, cmd_fd = context->cmd_fd;
  const verbs_ex_private* priv = c.vctx.priv;
  std::erase(process().contexts, context);
  c.ops->close(context);
  delete priv;
  if (async_fd >= 0) k.close(async_fd);
  k.close(cmd_fd);
  call.end(0, 0);
  return 0;
}

}  // extern "C"
