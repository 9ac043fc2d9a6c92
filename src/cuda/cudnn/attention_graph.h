#pragma once

#include <string>

#include "src/cuda/cudnn/cudnn_graph.h"
#include "src/ops/sequence_operations.h"
#include "src/ops/tensor.h"

namespace spillway::cuda {

enum class AttentionPass { kForward, kBackward };

/// One pass of an attention in bfloat16 without dropout, as a request to cuDNN.
struct AttentionProblem {
  AttentionPass pass;
  TensorShape x;
  Heads heads;
  bool is_causal;

  friend bool operator==(const AttentionProblem&, const AttentionProblem&) = default;
};

[[nodiscard]] inline AttentionProblem problem_of(AttentionPass pass, const AttentionGeometry& g) {
  return {.pass = pass, .x = g.x, .heads = g.heads, .is_causal = g.is_causal};
}
[[nodiscard]] inline AttentionProblem problem_of(const AttentionForward& op) {
  return problem_of(AttentionPass::kForward, op.geometry);
}
[[nodiscard]] inline AttentionProblem problem_of(const AttentionBackward& op) {
  return problem_of(AttentionPass::kBackward, op.geometry);
}

/// Returns true if cuDNN may support the attention. This requires bfloat16 and no
/// dropout, since masks must equal the host's. Heads must be a multiple of 16 bytes wide, so that
/// x and y have no padding.
[[nodiscard]] bool may_be_cudnns(Precision precision, const AttentionGeometry& geometry);

/// Returns text for messages: "attention's forward pass, 4 x 256 tokens, 12 heads of 64".
[[nodiscard]] std::string describe(const AttentionProblem& problem);

/// Ids of the graph's tensors, which get addresses at execution. Queries, keys and values are parts
/// of x's rows, their gradients of dx's rows.
inline constexpr std::int64_t kTensorQueries = 'q';
inline constexpr std::int64_t kTensorKeys = 'k';
inline constexpr std::int64_t kTensorValues = 'v';
inline constexpr std::int64_t kTensorResult = 'o';      ///< y
inline constexpr std::int64_t kTensorStatistics = 's';  ///< saved: log-sum-exp of the scores
/// Floats in host memory: the factor of the scores, and minus infinity for a causal mask.
inline constexpr std::int64_t kTensorScale = 'c';
inline constexpr std::int64_t kTensorMasked = 'i';
/// Ids used only by backward.
inline constexpr std::int64_t kTensorResultGradient = 'O';  ///< dy
inline constexpr std::int64_t kTensorQueryGradients = 'Q';
inline constexpr std::int64_t kTensorKeyGradients = 'K';
inline constexpr std::int64_t kTensorValueGradients = 'V';
inline constexpr std::int64_t kTensorMeans = 'm';  ///< scratch: a float per head and token
inline constexpr std::int64_t kTensorOne = '1';    ///< the float 1 in host memory

/// Returns the pass as the operations in which cuDNN 9 recognises its fused attention. (The
/// single-node operation of 9.19 has no causal mask.) Backward uses no atomics: the gradients of
/// scores are kept in the engine's workspace, two bytes per query, key and head.
[[nodiscard]] CudnnGraph attention_graph(const CudnnTarget& target,
                                         const AttentionProblem& problem);

}  // namespace spillway::cuda
