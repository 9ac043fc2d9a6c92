#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nets/network.h"
#include "src/ops/backend.h"
#include "src/ops/training_operations.h"

namespace spillway::test {

/// What PyTorch made of one network of tests/golden/families.json, which
/// tools/golden/make_family_golden writes.
struct FamilyGolden {
  std::string name;
  std::string prefix;  ///< of the names of its sequences of drawn numbers
  std::size_t batch = 0;
  std::uint64_t batches = 0;  ///< different ones, in turn
  std::uint64_t seed = 0;     ///< of dropout
  float learning_rate = 0;
  SgdOptions sgd;
  std::vector<double> losses;  ///< of the first steps
  /// Of the gradients of some parameter blocks in the first step, weights and biases together:
  /// three for each height and width of images, which make_family_golden chooses; in bf16 of all.
  std::map<std::string, double> gradient_norms;
  /// How far, in bf16, PyTorch's losses are from those in 64 bits, the ten of them as a vector: the
  /// norm of the difference, in norms of these. Likewise its gradient norms. Else 0.
  double loss_rounding = 0;
  double norm_rounding = 0;

  /// Throws: std::exception when the file is not what it should be.
  [[nodiscard]] static FamilyGolden read(const std::string& name);
  /// The same with what PyTorch made of it under autocast to bfloat16, as
  /// tests/golden/families_bf16.json has it, written by tools/golden/make_bf16_golden.
  [[nodiscard]] static FamilyGolden read_bf16(const std::string& name);
  /// The names of all networks that the file has.
  [[nodiscard]] static std::vector<std::string> names();

  /// The batch of step `step`.
  [[nodiscard]] Batch make_batch(const nets::Network& network, std::uint64_t step) const;
};

}  // namespace spillway::test
