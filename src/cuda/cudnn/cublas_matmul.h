#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <string>

#include "src/cuda/layout/layout.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// D = A B for row-major matrices: (rows x columns) = (rows x inner) (inner x columns). All are
/// aligned to 16 bytes; B and D are dense.
struct MatmulProblem {
  std::size_t rows;
  std::size_t columns;
  std::size_t inner;
  bool a_is_transposed = false;  ///< A is stored as (inner x rows)
  std::size_t a_stride = 0;      ///< elements between stored rows of A; 0: dense
  bool b_is_transposed = false;  ///< B is stored as (columns x inner)
  bool d_is_float = false;       ///< otherwise D has the type of A and B, set by the precision
  bool bias = false;             ///< adds one number of D's type per column
  std::string purpose;           ///< for messages: "the linear layer's forward pass"
};

/// A matrix product, prepared for one algorithm of cuBLASLt: the first in its heuristics' order
/// that needs at most 32 MiB and at most the machine's max_workspace. Sums are float. On a
/// deterministic machine no sum is split between blocks.
class Matmul {
 public:
  /// Throws: um::Error if cuBLASLt has no algorithm.
  Matmul(const Machine& machine, MatmulProblem problem);

  [[nodiscard]] um::Bytes workspace() const { return um::Bytes{algorithm_.workspaceSize}; }
  /// Returns true if run() adds the problem's bias; otherwise the caller must. The caller always
  /// applies a ReLU, because cuBLASLt's turns a NaN into zero.
  [[nodiscard]] bool adds_bias() const { return adds_bias_; }

  /// Enqueues the product; with `adds`, D += A B. `bias` may be null unless adds_bias(). Throws:
  /// um::Error.
  void run(const std::byte* a, const std::byte* b, const std::byte* bias, std::byte* d,
           std::byte* workspace, bool adds = false) const;

 private:
  // Selects an algorithm; returns false if cuBLASLt has none.
  bool find_algorithm(bool adds_bias);

  Machine machine_;
  MatmulProblem problem_;
  cublasLtMatmulHeuristicResult_t algorithm_{};
  bool adds_bias_ = false;
};

}  // namespace spillway::cuda
