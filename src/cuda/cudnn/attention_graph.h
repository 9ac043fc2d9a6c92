#pragma once

#include <string>

#include "src/cuda/cudnn/cudnn_graph.h"
#include "src/ops/sequence_operations.h"
#include "src/ops/tensor.h"

namespace spillway::cuda {

enum class AttentionPass { kForward, kBackward };

/// One pass of an attention without dropout in bfloat16, as cuDNN is asked for it.
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

/// Whether it is worth asking cuDNN: in bfloat16; without dropout, whose masks must be the host's;
/// and with heads of whole packs of 16 bytes, so that x and y have no padding.
[[nodiscard]] bool may_be_cudnns(Precision precision, const AttentionGeometry& geometry);

/// For messages: "attention's forward pass, 4 x 256 tokens, 12 heads of 64".
[[nodiscard]] std::string describe(const AttentionProblem& problem);

/// The tensors of the graph, which an execution gives addresses of. Queries, keys and values are
/// parts of each row of x, their gradients of dx.
inline constexpr std::int64_t kTensorQueries = 'q';
inline constexpr std::int64_t kTensorKeys = 'k';
inline constexpr std::int64_t kTensorValues = 'v';
inline constexpr std::int64_t kTensorResult = 'o';      ///< y
inline constexpr std::int64_t kTensorStatistics = 's';  ///< saved: logarithms of sums
/// Floats in host memory: what scores are multiplied by, and with a causal mask minus infinity.
inline constexpr std::int64_t kTensorScale = 'c';
inline constexpr std::int64_t kTensorMasked = 'i';
/// Of the way back alone.
inline constexpr std::int64_t kTensorResultGradient = 'O';  ///< dy
inline constexpr std::int64_t kTensorQueryGradients = 'Q';
inline constexpr std::int64_t kTensorKeyGradients = 'K';
inline constexpr std::int64_t kTensorValueGradients = 'V';
inline constexpr std::int64_t kTensorMeans = 'm';  ///< scratch: a float for each head and token
inline constexpr std::int64_t kTensorOne = '1';    ///< a float in host memory: 1

/// The pass as the operations in which cuDNN 9 recognises its fused attention. (Its operation of
/// one node knows no causal mask in 9.19.) On the way back nothing is added with atomics: the
/// gradients of scores wait in the engine's workspace, two bytes for each query, key and head.
[[nodiscard]] CudnnGraph attention_graph(const CudnnTarget& target,
                                         const AttentionProblem& problem);

}  // namespace spillway::cuda
