#include "src/plan/memory_choice.h"

#include "um/error.h"

namespace spillway {

MemoryChoice choose_memory(const um::MemoryFacts& device, const um::FarOptions& far) {
  const bool has_file = !far.file.empty();
  if (device.is_host_ram && !has_file) {
    return {.mode = MemoryMode::kResident,
            .reason =
                "its memory is the host's RAM, where moving frees nothing; --far file:PATH "
                "trains beyond it"};
  }
  if (device.is_host_ram) {
    return {.mode = MemoryMode::kCopy,
            .reason = "its memory is the host's RAM, so that only a file is far"};
  }
  if (!device.moves_by_hints) {
    return {
        .mode = MemoryMode::kCopy,
        .reason = "its unified memory does not move by hints, so that whole tensors are copied"};
  }
  if (has_file && !device.hints_reach_files) {
    return {.mode = MemoryMode::kCopy, .reason = "its unified memory does not reach files"};
  }
  return {.mode = MemoryMode::kManaged,
          .reason = "pages move by hints, and only where the budget has no room"};
}

void expect_budget_kept(MemoryMode memory, bool pages_on_demand, const um::Device& device) {
  if (memory != MemoryMode::kManaged || !pages_on_demand || device.evicts()) return;
  throw um::Error{"page faults alone keep no budget on " + device.name() +
                  ": use another planner, explicit copies, or the host"};
}

}  // namespace spillway
