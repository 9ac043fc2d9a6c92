#pragma once

#include <memory>

#include "um/device.h"
#include "um/host/far/far_store.h"
#include "um/memory.h"
#include "um/options.h"

namespace spillway::um {

/// Makes the host's unified memory (see um/README.md). The ledger outlives it. Near memory is taken
/// from the system at once. When it ends, no thread may touch it any more.
/// Throws: Error when the paging mechanism asked for is not available, with what would be; or when
/// near memory or the far file cannot be had.
[[nodiscard]] std::unique_ptr<ManagedSpace> make_managed_region(const ManagedOptions& options,
                                                                Ledger& ledger);

/// The same with a far store of the caller's. Requires: `far` has options.size bytes.
[[nodiscard]] std::unique_ptr<ManagedSpace> make_managed_region(const ManagedOptions& options,
                                                                Ledger& ledger,
                                                                std::unique_ptr<FarStore> far);

}  // namespace spillway::um
