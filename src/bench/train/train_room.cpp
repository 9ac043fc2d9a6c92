#include "src/bench/train/train_room.h"

#include <algorithm>
#include <string>

#include "um/error.h"

namespace spillway {
namespace {

using um::Bytes;

// Unified memory takes no more than it can use, the arena of explicit copies all of its budget.
Bytes near_of(const TrainTrial& trial) {
  if (trial.strategy().memory == MemoryMode::kCopy) return trial.budget();
  return std::min(trial.budget(), trial.subject().workload().need().peak_with_workspace);
}

void refuse(const TrainTrial& trial, Bytes needed, const char* what, Bytes free,
            bool has_far_file) {
  throw um::Error{description(trial) + ", needs " + um::to_string(needed) + " of " + what +
                  ", but " + um::to_string(free) + " are free; give smaller batches or budgets" +
                  (has_far_file ? "" : ", or --far file:PATH")};
}

}  // namespace

void expect_room(const TrainComparison& comparison, const TrainRoom& room, bool has_far_file) {
  Bytes images;
  for (const auto& subject : comparison.subjects()) images += subject->image_bytes();
  for (const auto& trial : comparison.trials()) {
    if (trial->strategy().is_resident()) continue;
    const prefetch::NearNeed& need = trial->subject().workload().need();
    const Bytes near = near_of(*trial);
    const Bytes ram = images + (has_far_file ? Bytes{} : need.resident);
    if (room.is_shared && near + ram > room.ram) {
      refuse(*trial, near + ram, "memory, near and far", room.ram, has_far_file);
    }
    if (near > room.near) refuse(*trial, near, "near memory", room.near, true);
    if (ram > room.ram) refuse(*trial, ram, "far memory", room.ram, has_far_file);
  }
}

}  // namespace spillway
