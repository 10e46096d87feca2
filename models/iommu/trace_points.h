// SPDX-License-Identifier: Apache-2.0
// Trace points of the IOMMU.
#pragma once

#include "sim/trace/trace.h"

namespace iommu::trace_points {

using sim::trace::Category;
using sim::trace::Kind;
using sim::trace::Point;

/// A page walk: request missed, walk began (a walker was free), translation known or fault. `accesses` = memory reads.
inline constexpr Point kWalk{"iommu.walk", Category::iommu, Kind::span, {"iova", "phys", "accesses", "fault"}};
/// A request waited for the walk that an earlier one had begun for the same page.
inline constexpr Point kMerged{"iommu.walk_shared", Category::iommu, Kind::span, {"iova", "phys"}};
/// Look-ups that the IOTLB could not answer so far: its slope is the rate of misses.
inline constexpr Point kMisses{"iommu.iotlb_misses", Category::iommu, Kind::level, {"misses"}};
/// Translations in the IOTLB.
inline constexpr Point kEntries{"iommu.iotlb_entries", Category::iommu, Kind::level, {"entries"}};
/// A request was refused; `reason` is a FaultReason.
inline constexpr Point kFault{
    "iommu.fault", Category::iommu, Kind::instant, {"iova", "write", "reason"}, sim::trace::Mark::error};
/// Invalidation: asked for, begun, complete (in-flight requests drained).
inline constexpr Point kInvalidate{"iommu.invalidate", Category::iommu, Kind::span, {"iova", "pages"}};

}  // namespace iommu::trace_points
