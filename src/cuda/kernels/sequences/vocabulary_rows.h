#pragma once

#include <cstddef>
#include <cstdint>

#include "src/cuda/layout/layout.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// The contribution of one token to the result of a loss.
struct TokenLoss {
  float loss;
  float correct;
};

/// The logits of a chunk of tokens: one row of floats per token, padded after the vocabulary.
struct LogitRows {
  float* logits;
  std::size_t rows;
  std::size_t vocabulary;
  std::size_t stride;
  const float* bias;  ///< added to each row, or null
};

/// Enqueues: *share = weight of a token in the mean loss: one over the number of labels that are
/// not negative, or over `*step_whole` if that is not zero.
void vocabulary_share(const Machine& machine, const std::int32_t* labels, std::size_t count,
                      const std::uint64_t* step_whole, float* share);

/// Returns the elements between rows of gradients that judge_rows() writes.
[[nodiscard]] std::size_t slope_stride(const Machine& machine, const LogitRows& rows);

/// Enqueues losses[i] of each row. If `share` is not null, also smooths losses as
/// SoftmaxCrossEntropyTrain does, and writes the gradient of the logits over them: elements of the
/// precision at the beginning of each row, with zeros as padding.
void judge_rows(const Machine& machine, const LogitRows& rows, const std::int32_t* labels,
                const float* share, float smoothing, TokenLoss* losses);

/// Enqueues: sums[v] = (or += if `adds`) the sum of column v of the gradients that judge_rows() has
/// written over the logits, in row order.
void sum_columns(const Machine& machine, const LogitRows& rows, float* sums, bool adds);

/// Enqueues: result = the sum of losses (times *share unless null) and the number of correct
/// predictions, in token order.
void write_vocabulary_result(const Machine& machine, const TokenLoss* losses, std::size_t count,
                             const float* share, float* result);

}  // namespace spillway::cuda
