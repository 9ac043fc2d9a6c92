#pragma once

#include <memory>

#include "um/ledger.h"
#include "um/space.h"

namespace spillway::um {

/// Makes the host's unified memory (see um/host/README.md). Throws: Error when the paging mechanism
/// asked for is not available, with what would be; or when near memory or the far file cannot be
/// had.
[[nodiscard]] std::unique_ptr<ManagedSpace> make_managed_region(const SpaceOptions& options,
                                                                Ledger& ledger);

}  // namespace spillway::um
