#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "src/ops/tensor.h"
#include "src/ops/training_operations.h"
#include "tests/golden/family_golden.h"
#include "tests/src/network_in_memory.h"

namespace spillway::test {

/// The training of a network of the family golden file, on this machine's processor and resident.
class FamilyTraining {
 public:
  /// `golden` outlives it.
  FamilyTraining(const FamilyGolden& golden, const SgdOptions& optimizer,
                 Precision precision = Precision::kFp32);

  /// The loss of the batch of step `step`, which it takes.
  double train(std::uint64_t step);
  /// Norms of the momenta of parameter blocks, by name. After the first step, if no weight decays,
  /// they are those of its gradients.
  [[nodiscard]] std::map<std::string, double> momentum_norms();

 private:
  const FamilyGolden& golden_;
  NetworkInMemory net_;
};

}  // namespace spillway::test
