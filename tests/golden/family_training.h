#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "src/ops/tensor.h"
#include "src/ops/training_operations.h"
#include "tests/golden/family_golden.h"
#include "tests/src/network_in_memory.h"

namespace spillway::test {

/// Trains a network of the family golden file on the host, resident.
class FamilyTraining {
 public:
  /// `golden` outlives it.
  FamilyTraining(const FamilyGolden& golden, const SgdOptions& optimizer,
                 Precision precision = Precision::kFp32);

  /// Runs step `step` and returns its loss.
  double train(std::uint64_t step);
  /// Returns norms of the momentum of parameter blocks, by name. After the first step without
  /// weight decay, these are the gradients' norms.
  [[nodiscard]] std::map<std::string, double> momentum_norms();

 private:
  const FamilyGolden& golden_;
  NetworkInMemory net_;
};

}  // namespace spillway::test
