#pragma once

#include <string>
#include <vector>

#include "um/bytes.h"

namespace spillway {

/// What a training may not get wrong, whatever its speed.
struct RunRecord {
  std::string name;  ///< "resnet18 at batch 16, joint within 512 MiB"
  um::Bytes budget;
  um::Bytes near_peak;
  std::vector<float> losses;  ///< of the steps of the first round
  bool repeats_itself;        ///< each round had these losses, bit for bit
};

/// True when both are the same bit for bit, as far as the shorter one goes: an interrupted round
/// has fewer.
[[nodiscard]] bool are_same_losses(const std::vector<float>& a, const std::vector<float>& b);

/// Parts of a sentence about near memory beyond the budget and, where `expected` is given, losses
/// that are not its, or not the same each round. Empty where all is as it must be.
[[nodiscard]] std::vector<std::string> complaints_about(const RunRecord& run_record,
                                                        const RunRecord* expected);

}  // namespace spillway
