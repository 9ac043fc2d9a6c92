#pragma once

#include <optional>
#include <string>
#include <vector>

#include "um/cuda/driver/cuda_facts.h"
#include "um/device.h"

namespace spillway::um {

/// What a GPU can do here, from what it says of itself. `link` as pcie_link() has it;
/// `no_counters`: why faults cannot be counted.
[[nodiscard]] std::vector<Capability> describe(const CudaFacts& facts,
                                               const std::optional<std::string>& link,
                                               const std::optional<std::string>& no_counters);

}  // namespace spillway::um
