#pragma once

#include <nlohmann/json.hpp>

#include "um/bytes.h"
#include "um/cuda/cuda_device.h"
#include "um/cuda/driver/driver_counters.h"

namespace spillway::gpu {

/// Every total by its name.
[[nodiscard]] nlohmann::json to_json(const um::DriverTotals& totals);

/// What CUPTI counts while a block of `size` bytes moves as a
/// run moves it: "budgeted", three times out, in and renewed, which must show no fault and no
/// eviction; and while it is touched where it is not, "touched", which are the faults that
/// measure_faults() times. `api` is the device's own.
/// Requires: the device was opened with counts_faults.
/// Throws: um::Error; CudaError.
[[nodiscard]] nlohmann::json count_faults(um::CudaDevice& device, um::CudaApi& api, um::Bytes size);

}  // namespace spillway::gpu
