#pragma once

#include <nlohmann/json.hpp>

#include "um/bytes.h"
#include "um/device.h"

namespace spillway::gpu {

/// What is moved while the link is measured as a run uses it.
struct StreamingOptions {
  um::Bytes total;  ///< each way; a multiple of `chunk`
  um::Bytes chunk;  ///< one move; a multiple of 2 MiB
  int repeats = 5;
};

/// The unified memory that measure_streaming() allocates.
[[nodiscard]] um::Bytes managed_need(const StreamingOptions& options);

/// The link as a run sees it, through the device's spaces, many moves in a row: for each of
/// "managed" and "copy" {"in", "out", "in_while_out", "out_while_in"}, bytes a second. A space that
/// cannot be had is {"why_not"}. Throws: um::Error when a move fails.
[[nodiscard]] nlohmann::json measure_streaming(um::Device& device, const StreamingOptions& options);

}  // namespace spillway::gpu
