#pragma once

#include <cstddef>

#include "src/ops/tensor.h"
#include "um/bytes.h"

namespace spillway {

/// What a forward operation computes; kOther for all others.
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

/// Which backends run an operation with scratch bytes beside its operands.
enum class Workspace { kNone, kHost, kCuda, kBoth };

/// A member that an initializer may not leave out: it has no default.
template <class T>
class Stated {
 public:
  constexpr Stated(T value) : value_{value} {}  // implicit, as is the way back
  constexpr operator T() const { return value_; }

 private:
  T value_;
};

/// What is the same for all operations of one type: its row in the table of operations. Layers and
/// backends read it. An operation without a row does not compile, nor a row that leaves out what
/// is Stated.
struct OperationRow {
  OperationKind kind = OperationKind::kOther;
  /// Running the operation again in the same step gives the same bits: everything on the way
  /// forward but the batch, which is loaded once, and the loss, whose result is the step's.
  Stated<bool> is_recomputable;
  Stated<Workspace> workspace;
  bool saves = false;           ///< a mask or an index: Backend::saved_bytes() bytes
  bool has_algorithms = false;  ///< a backend may offer more than one
};

/// What an operation does at least, for a roofline model: arithmetic with the direct algorithm, and
/// each operand moved once.
struct OperationCost {
  double flops = 0;  ///< a multiply-add counts as two
  um::Bytes traffic;
};

/// Of so many operands of one shape.
[[nodiscard]] inline OperationCost element_wise_cost(const TensorShape& shape, std::size_t operands,
                                                     double flops_each) {
  return {.flops = flops_each * static_cast<double>(shape.elements()),
          .traffic = float_bytes(operands * shape.elements())};
}

}  // namespace spillway
