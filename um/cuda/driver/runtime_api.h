#pragma once

#include <memory>
#include <optional>
#include <string>

#include "um/cuda/driver/api.h"

namespace spillway::um {

/// The driver's answer to a query of its devices.
struct DriverAnswer {
  int status = 0;           ///< cudaError_t of cudaGetDeviceCount()
  std::string status_text;  ///< CUDA's text for the status
  int devices = 0;          ///< valid on success
  int driver_version = 0;   ///< newest CUDA version of the driver; 0 without a driver
  int runtime_version = 0;  ///< CUDA version that this program was built with
};

/// Returns why device `ordinal` cannot be used, as one sentence with advice; nullopt when it can.
[[nodiscard]] std::optional<std::string> why_unusable(const DriverAnswer& answer, int ordinal);

/// Queries the driver before any device is opened.
[[nodiscard]] DriverAnswer ask_driver();

/// Opens the CUDA runtime, and looks up driver entry points that are newer than the oldest
/// supported CUDA. Requires: the device is usable (why_unusable()). Throws: CudaError.
[[nodiscard]] std::unique_ptr<CudaApi> open_runtime_api(int ordinal);

}  // namespace spillway::um
