#pragma once

#include <optional>
#include <string>
#include <vector>

#include "um/bytes.h"
#include "um/cuda/driver/api.h"
#include "um/device.h"
#include "um/options.h"

namespace spillway::um {

/// Returns a GPU's capabilities from its reported facts. `link` is a result of pcie_link();
/// `no_counters` says why faults cannot be counted.
[[nodiscard]] std::vector<Capability> describe(const CudaFacts& facts,
                                               const std::optional<std::string>& link,
                                               const std::optional<std::string>& no_counters);

/// Return the options themselves. Throw: Error with advice when the options ask for what this
/// device cannot do, or for what only the host device does.
const ManagedOptions& checked(const ManagedOptions& options, const CudaFacts& facts);
const CopyOptions& checked(const CopyOptions& options, const CudaFacts& facts);

/// Advice for a user when RAM has no room for far memory.
inline constexpr const char* kFarAdvice =
    "use a larger budget or a smaller batch, so that less has to be far";

/// Throws: OutOfMemory unless RAM has room for `size` bytes and a margin of 1 GiB. The message
/// names the failed `deed`, as in "pin 3 GiB of RAM", and gives advice.
void expect_far_room(Bytes size, const std::string& deed);

}  // namespace spillway::um
