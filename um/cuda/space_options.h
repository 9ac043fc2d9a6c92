#pragma once

#include "um/copy_space.h"
#include "um/cuda/cuda_facts.h"
#include "um/managed_space.h"

namespace spillway::um {

/// The options themselves. Throws: Error, one sentence that says what to do, when they ask for what
/// this device cannot do, or for what only the host device does.
const ManagedOptions& checked(const ManagedOptions& options, const CudaFacts& facts);
const CopyOptions& checked(const CopyOptions& options);

}  // namespace spillway::um
