#pragma once

#include "um/nanoseconds.h"

namespace spillway::um {

/// How a device serves page faults of unified memory that nobody hints to.
struct Faults {
  Nanoseconds time{20'000};        ///< of each, beside the page's transfer; 20 to 50 us are a GPU's
  bool spare_overwritten = false;  ///< a page is not brought near for a task that overwrites it
                                   ///< whole and said so (Hints::begin_use)
  bool evict_by_use = false;  ///< what was used longest ago leaves, else what came near longest ago
};

/// The host device's. The time was measured on two machines, with pages of 2 MiB.
inline constexpr Faults kHostFaults{
    .time = Nanoseconds{5'200}, .spare_overwritten = true, .evict_by_use = true};

}  // namespace spillway::um
