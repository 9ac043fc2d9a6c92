#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "um/cuda/driver/cuda_facts.h"
#include "um/device.h"

namespace spillway::gpu {

/// Every fact by its name.
[[nodiscard]] nlohmann::json to_json(const um::CudaFacts& facts);

/// [{"name", "available", "comment"}]
[[nodiscard]] nlohmann::json to_json(const std::vector<um::Capability>& capabilities);

}  // namespace spillway::gpu
