// SPDX-License-Identifier: Apache-2.0
// The mlx5 provider as the library sees it.
#pragma once

#include "verbs_frontend/libibverbs/provider.h"

namespace verbs::mlx5 {

extern const Provider kProvider;

}  // namespace verbs::mlx5
