#pragma once

#include <memory>

#include "um/device.h"
#include "um/host/far/far_store.h"
#include "um/memory.h"
#include "um/options.h"

namespace spillway::um {

/// Makes the host's unified memory (see um/README.md). The ledger outlives it. Allocates all near
/// memory now. Requires: no thread touches the memory when the space is destroyed. Throws: Error
/// when the requested paging mechanism is unavailable, with the alternative; or when near memory or
/// the far file is.
[[nodiscard]] std::unique_ptr<ManagedSpace> make_managed_region(const ManagedOptions& options,
                                                                Ledger& ledger);

/// As above, with a far store of the caller. Requires: `far` has options.size bytes.
[[nodiscard]] std::unique_ptr<ManagedSpace> make_managed_region(const ManagedOptions& options,
                                                                Ledger& ledger,
                                                                std::unique_ptr<FarStore> far);

}  // namespace spillway::um
