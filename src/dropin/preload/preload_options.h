#pragma once

#include "um/bytes.h"

namespace spillway::dropin {

/// What the environment says about the preloaded library itself.
struct PreloadOptions {
  um::Bytes min;       ///< smaller allocations are the CUDA runtime's
  bool is_quiet;       ///< no warning is printed
  bool has_report;     ///< a line of counters is printed when the process ends
  bool is_understood;  ///< false: `least` is no size, and nothing is served
};

/// SPILLWAY_UM_PRELOAD_LEAST (1 MiB unless given), SPILLWAY_UM_PRELOAD_QUIET=1 and
/// SPILLWAY_UM_PRELOAD_REPORT=1.
[[nodiscard]] PreloadOptions read_preload_options() noexcept;

}  // namespace spillway::dropin
