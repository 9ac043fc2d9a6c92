#pragma once

#include <optional>
#include <string>

#include "src/plan/plans.h"
#include "um/device.h"
#include "um/options.h"

namespace spillway {

/// A memory mode for a run without a given one.
struct MemoryChoice {
  MemoryMode mode;
  std::string reason;  ///< half a sentence: "pages of unified memory move by hints"
};

/// Returns the mode that suits a device and far memory best: pages that move by hints where there
/// are any, whole blocks otherwise, and nothing where moving frees nothing.
[[nodiscard]] MemoryChoice choose_memory(const um::MemoryFacts& device, const um::FarOptions& far);

/// Returns `asked`, or if it is empty the choice for the device.
[[nodiscard]] inline MemoryMode memory_mode(std::optional<MemoryMode> asked,
                                            const um::Device& device, const um::FarOptions& far) {
  return asked ? *asked : choose_memory(device.memory_facts(), far).mode;
}

/// Throws: um::Error if pages would move by faults alone, with no budget, since the device evicts
/// only when its whole memory is full.
void expect_budget_kept(MemoryMode memory, bool pages_on_demand, const um::Device& device);

}  // namespace spillway
