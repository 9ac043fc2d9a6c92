#pragma once

#include <memory>

#include "um/cuda/driver/api.h"
#include "um/cuda/driver/usability.h"

namespace spillway::um {

/// What the driver answers before any device is opened.
[[nodiscard]] DriverAnswer ask_driver();

/// The CUDA runtime, and the entry points of the driver that are newer than the oldest CUDA this
/// compiles with, looked up here.
/// Requires: the device is usable (usability.h). Throws: CudaError.
[[nodiscard]] std::unique_ptr<CudaApi> open_runtime_api(int ordinal);

}  // namespace spillway::um
