#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "src/cuda/layout/layout.h"
#include "src/ops/backend.h"
#include "src/ops/weighted_operations.h"
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

/// One of cuBLASLt's ways to compute a product.
struct MatmulAlgorithm {
  /// Number and settings that differ from the usual ones: "algo66_tile=18_stages=36". The name is
  /// the same in every process with the same cuBLASLt.
  std::string name;
  cublasLtMatmulAlgo_t algorithm;
  um::Bytes workspace;
  bool adds_bias;
};

/// Returns what cuBLASLt expects to be fastest, in this order: one to eight algorithms that each
/// need at most 32 MiB and at most the machine's max_workspace. Sums are float. On a deterministic
/// machine no sum is split between blocks. If any algorithm adds the problem's bias, all of them
/// do. Throws: um::Error if cuBLASLt has no algorithm.
[[nodiscard]] std::vector<MatmulAlgorithm> matmul_algorithms(const Machine& machine,
                                                             const MatmulProblem& problem);

/// A matrix product, prepared for one of matmul_algorithms().
class Matmul {
 public:
  /// Takes the first algorithm. Throws: um::Error if cuBLASLt has none.
  Matmul(const Machine& machine, MatmulProblem problem);
  /// Requires: `algorithm` is the name of one of matmul_algorithms().
  Matmul(const Machine& machine, MatmulProblem problem, std::string_view algorithm);

  [[nodiscard]] um::Bytes workspace() const { return algorithm_.workspace; }
  /// Returns true if run() adds the problem's bias; otherwise the caller must. The caller always
  /// applies a ReLU, because cuBLASLt's turns a NaN into zero.
  [[nodiscard]] bool adds_bias() const { return algorithm_.adds_bias; }

  /// Enqueues the product; with `adds`, D += A B. `bias` may be null unless adds_bias(). Throws:
  /// um::Error.
  void run(const std::byte* a, const std::byte* b, const std::byte* bias, std::byte* d,
           std::byte* workspace, bool adds = false) const;

 private:
  Machine machine_;
  MatmulProblem problem_;
  MatmulAlgorithm algorithm_;
};

/// Return the algorithms of a linear layer's product. The first is the baseline, with the smallest
/// workspace; among equal ones the expected fastest.
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                                       const LinearForward& op);
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                                       const LinearBackwardData& op);
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                                       const LinearBackwardWeights& op);

}  // namespace spillway::cuda
