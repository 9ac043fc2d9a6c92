#pragma once

#include "src/ops/backend.h"
#include "src/ops/tensor.h"

namespace spillway {

/// The sizes of a step on a GPU that is not here: dense tensors without padding. In fp32 3x3
/// convolutions of stride 1 have a fast algorithm with a workspace of 1.125 times what it reads and
/// makes; tensor cores multiply directly. A loss over a vocabulary has a chunk of its logits. In
/// bf16 layers with weights have a bfloat16 copy of them.
class MachineSizeModel : public SizeModel {
 public:
  explicit MachineSizeModel(Precision precision = Precision::kFp32) : precision_{precision} {}

  [[nodiscard]] um::Bytes tensor_bytes(const TensorShape& shape) const override;
  [[nodiscard]] um::Bytes parameter_bytes(const ParameterSpec& spec) const override;
  [[nodiscard]] std::size_t parameter_parts(const ParameterSpec& spec,
                                            um::Bytes most) const override;
  [[nodiscard]] um::Bytes parameter_part_bytes(const ParameterSpec& spec,
                                               const ParameterPart& part) const override;
  [[nodiscard]] um::Bytes saved_bytes(const Operation& operation) const override;
  [[nodiscard]] std::vector<AlgorithmInfo> algorithms(const Operation& operation) const override;
  [[nodiscard]] FarUpdateSupport far_update_support() const override {
    return FarUpdateSupport::kOnRequest;
  }
  [[nodiscard]] um::Bytes traffic(const Operation& operation) const override;

 private:
  Precision precision_;
};

}  // namespace spillway
