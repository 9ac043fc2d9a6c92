#pragma once

#include "um/cuda/driver/cuda_facts.h"
#include "um/options.h"

namespace spillway::um {

/// The options themselves. Throws: Error, one sentence that says what to do, when they ask for what
/// this device cannot do, or for what only the host device does.
const ManagedOptions& checked(const ManagedOptions& options, const CudaFacts& facts);
const CopyOptions& checked(const CopyOptions& options);

}  // namespace spillway::um
