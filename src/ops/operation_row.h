#pragma once

#include <cstddef>

#include "src/ops/tensor.h"
#include "um/bytes.h"

namespace spillway {

/// Kind of a forward operation; kOther for all other operations.
enum class OperationKind {
  kOther,
  kConvolution,
  kLinear,
  kPool,
  kActivation,
  kNormalization,
  kDropout,
  kJoin
};

/// Which backends need scratch bytes for an operation, beside its operands.
enum class Workspace { kNone, kHost, kCuda, kBoth };

/// A member without a default, which an initializer must set.
template <class T>
class Stated {
 public:
  constexpr Stated(T value) : value_{value} {}  // implicit, like the conversion back
  constexpr operator T() const { return value_; }

 private:
  T value_;
};

/// Properties of all operations of one type, read by layers and backends. An operation
/// without a row does not compile, nor does a row that leaves out a Stated member.
struct OperationRow {
  OperationKind kind = OperationKind::kOther;
  /// Running the operation again in the same step gives the same bits. True for all forward
  /// operations except loading a batch and computing the loss.
  Stated<bool> is_recomputable;
  Stated<Workspace> workspace;
  bool saves = false;           ///< a mask or an index of Backend::saved_bytes() bytes
  bool has_algorithms = false;  ///< a backend may offer more than one
};

/// The least work of an operation, for a roofline model: arithmetic with the direct algorithm, and
/// each operand moved once.
struct OperationCost {
  double flops = 0;  ///< a multiply-add counts as two
  um::Bytes traffic;
};

/// Returns the cost of an element-wise operation on `operands` tensors of one shape.
[[nodiscard]] inline OperationCost element_wise_cost(const TensorShape& shape, std::size_t operands,
                                                     double flops_each) {
  return {.flops = flops_each * static_cast<double>(shape.elements()),
          .traffic = float_bytes(operands * shape.elements())};
}

}  // namespace spillway
