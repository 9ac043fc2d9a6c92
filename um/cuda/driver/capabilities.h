#pragma once

#include <optional>
#include <string>
#include <vector>

#include "um/bytes.h"
#include "um/cuda/driver/api.h"
#include "um/device.h"
#include "um/options.h"

namespace spillway::um {

/// What a GPU can do here, from what it says of itself. `link` as pcie_link() has it;
/// `no_counters`: why faults cannot be counted.
[[nodiscard]] std::vector<Capability> describe(const CudaFacts& facts,
                                               const std::optional<std::string>& link,
                                               const std::optional<std::string>& no_counters);

/// The options themselves. Throws: Error, one sentence that says what to do, when they ask for what
/// this device cannot do, or for what only the host device does.
const ManagedOptions& checked(const ManagedOptions& options, const CudaFacts& facts);
const CopyOptions& checked(const CopyOptions& options);

/// What to do when RAM has no room for far memory.
inline constexpr const char* kFarAdvice =
    "use a larger budget or a smaller batch, so that less has to be far";

/// Throws: OutOfMemory unless RAM has `size` bytes, and a margin of 1 GiB for everything else. Its
/// sentence says what cannot be done, as in "pin 3 GiB of RAM", and what to do instead.
void expect_far_room(Bytes size, const std::string& deed);

}  // namespace spillway::um
