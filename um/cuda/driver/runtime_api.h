#pragma once

#include <memory>
#include <optional>
#include <string>

#include "um/cuda/driver/api.h"

namespace spillway::um {

/// What came back when the driver was asked for its devices.
struct DriverAnswer {
  int status = 0;           ///< cudaError_t of cudaGetDeviceCount()
  std::string status_text;  ///< CUDA's sentence on it
  int devices = 0;          ///< when it succeeded
  int driver_version = 0;   ///< newest CUDA of the driver; 0 when there is no driver
  int runtime_version = 0;  ///< CUDA that this program was built with
};

/// Why device `ordinal` cannot be used, in one sentence that says what to do; nothing when it can.
[[nodiscard]] std::optional<std::string> why_unusable(const DriverAnswer& answer, int ordinal);

/// What the driver answers before any device is opened.
[[nodiscard]] DriverAnswer ask_driver();

/// The CUDA runtime, and the entry points of the driver that are newer than the oldest CUDA this
/// compiles with, looked up here.
/// Requires: the device is usable (usability.h). Throws: CudaError.
[[nodiscard]] std::unique_ptr<CudaApi> open_runtime_api(int ordinal);

}  // namespace spillway::um
