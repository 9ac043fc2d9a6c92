#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <string>

#include "src/cuda/layout/layout.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// D = A B for row-major matrices: (rows x columns) = (rows x inner) (inner x columns). All begin
/// at multiples of 16 bytes, and B and D are dense.
struct MatmulProblem {
  std::size_t rows;
  std::size_t columns;
  std::size_t inner;
  bool a_is_transposed = false;  ///< A lies in memory as (inner x rows)
  std::size_t a_stride = 0;      ///< elements from one row of A in memory to the next; 0: dense
  bool b_is_transposed = false;  ///< B lies in memory as (columns x inner)
  bool d_is_float = false;  ///< else D's elements are of the precision's tensors, as A's and B's
  bool bias = false;        ///< adds a number of D's type to each column
  std::string purpose;      ///< for messages: "the linear layer's forward pass"
};

/// A product of matrices, made ready for one of cuBLASLt's algorithms: the one that its heuristics
/// put first among those that take at most 32 MiB and the machine's max_workspace. Sums are
/// float. On a deterministic machine no sum is split between blocks.
class Matmul {
 public:
  /// Throws: um::Error when cuBLASLt has no algorithm.
  Matmul(const Machine& machine, MatmulProblem problem);

  [[nodiscard]] um::Bytes workspace() const { return um::Bytes{algorithm_.workspaceSize}; }
  /// Whether run() adds the problem's bias. If not, the caller does. A ReLU is always the caller's:
  /// cuBLASLt's makes a NaN zero, and can not be told otherwise.
  [[nodiscard]] bool adds_bias() const { return adds_bias_; }

  /// Enqueues the product; with `adds`, D += A B. `bias` may be null unless adds_bias().
  /// Throws: um::Error.
  void run(const std::byte* a, const std::byte* b, const std::byte* bias, std::byte* d,
           std::byte* workspace, bool adds = false) const;

 private:
  // Whether cuBLASLt has an algorithm, which is kept.
  bool find_algorithm(bool adds_bias);

  Machine machine_;
  MatmulProblem problem_;
  cublasLtMatmulHeuristicResult_t algorithm_{};
  bool adds_bias_ = false;
};

}  // namespace spillway::cuda
