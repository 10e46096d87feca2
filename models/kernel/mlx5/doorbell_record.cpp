// SPDX-License-Identifier: Apache-2.0
// Pages of doorbell records in user memory (mlx5_ib doorbell.c).
#include <cerrno>

#include "kernel/mlx5/mlx5_ib.h"

namespace kernel::mlx5_ib {

int acquire_dbr(Mlx5Ucontext& context, std::uint64_t address, DbrPage*& page, std::uint64_t& bus) {
  if (address % 4 != 0) return -EINVAL;
  const memory::Va va{address};
  auto& slot = context.dbr_pages[va.page().v];
  if (!slot) {
    auto fresh = std::make_unique<DbrPage>();
    if (const int error = context.device->kernel.acquire(*context.user, va.page(), memory::kPageSize, fresh->region);
        error != 0) {
      context.dbr_pages.erase(va.page().v);
      return error;
    }
    slot = std::move(fresh);
  }
  ++slot->users;
  page = slot.get();
  bus = page->region.mapping.pages.front().v + va.offset();
  return 0;
}

void release_dbr(Mlx5Ucontext& context, DbrPage* page) {
  if (page == nullptr || --page->users != 0) return;
  // Off the table before anything blocks: a new user of the page must map it anew.
  const auto it = context.dbr_pages.find(page->region.start.v);
  const std::unique_ptr<DbrPage> last = std::move(it->second);
  context.dbr_pages.erase(it);
  context.device->kernel.release(*context.user, last->region);
}

}  // namespace kernel::mlx5_ib
