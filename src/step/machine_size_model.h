#pragma once

#include "src/ops/backend.h"

namespace spillway {

/// The sizes of a step on a machine that is not here: dense tensors without padding, and for 3x3
/// convolutions of stride 1 a fast algorithm with a workspace of 1.125 times what it reads and
/// makes.
class MachineSizeModel final : public SizeModel {
 public:
  [[nodiscard]] um::Bytes tensor_bytes(const TensorShape& shape) const override;
  [[nodiscard]] um::Bytes parameter_bytes(const ParameterSpec& spec) const override;
  [[nodiscard]] um::Bytes saved_bytes(const Operation& operation) const override;
  [[nodiscard]] std::vector<AlgorithmInfo> algorithms(const Operation& operation) const override;
};

}  // namespace spillway
