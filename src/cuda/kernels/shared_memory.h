#pragma once

#include <cstddef>

namespace spillway::cuda {

/// Bytes of shared memory that a block of threads may have on every device; more has to be asked
/// for.
inline constexpr std::size_t kSharedBytes = 48U << 10U;

}  // namespace spillway::cuda
