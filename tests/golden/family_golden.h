#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nets/network.h"
#include "src/ops/backend.h"
#include "src/ops/tensor.h"
#include "src/ops/training_operations.h"
#include "tests/src/network_in_memory.h"

namespace spillway::test {

/// PyTorch's results for one network in tests/golden/families.json, written by
/// tools/golden/make_family_golden.
struct FamilyGolden {
  std::string name;
  std::string prefix;  ///< prefix for the names of random sequences
  std::size_t batch = 0;
  std::uint64_t batches = 0;  ///< number of different batches, used in turn
  std::uint64_t seed = 0;     ///< for dropout
  float learning_rate = 0;
  SgdOptions sgd;
  std::vector<double> losses;  ///< of the first steps
  /// Norms of the first step's gradients of some parameter blocks, weights and biases together:
  /// three for each image size, chosen by make_family_golden; of all blocks in bf16.
  std::map<std::string, double> gradient_norms;
  /// Relative distance of PyTorch's losses in bf16 from those in 64 bits, as vectors of ten; the
  /// same for gradient norms. 0 in fp32.
  double loss_rounding = 0;
  double norm_rounding = 0;

  /// Throws: std::exception when the file is malformed.
  [[nodiscard]] static FamilyGolden read(const std::string& name);
  /// Reads PyTorch's results under autocast to bfloat16 from tests/golden/families_bf16.json,
  /// written by tools/golden/make_bf16_golden.
  [[nodiscard]] static FamilyGolden read_bf16(const std::string& name);
  /// Returns the names of all networks in the file.
  [[nodiscard]] static std::vector<std::string> names();

  /// Makes the batch of step `step`.
  [[nodiscard]] Batch make_batch(const nets::Network& network, std::uint64_t step) const;
};

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
