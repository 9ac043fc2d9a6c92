#pragma once

#include "um/dropin/space.h"
#include "um/options.h"

namespace spillway::um {

/// What the managed space under a Space is made of. `evicts` is the device's. Throws: Misuse when
/// the options make no sense.
[[nodiscard]] ManagedOptions managed_options(const SpaceOptions& options, bool evicts);

}  // namespace spillway::um
