#pragma once

#include <cstddef>
#include <cstdint>

#include "src/cuda/layout/layout.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// What one token adds to the result of a loss.
struct TokenLoss {
  float loss;
  float correct;
};

/// The logits of a chunk of tokens, a row each, floats, with padding behind the vocabulary.
struct LogitRows {
  float* logits;
  std::size_t rows;
  std::size_t vocabulary;
  std::size_t stride;
  const float* bias;  ///< added to each row; null: none
};

/// Enqueues: *share = what a token counts for in the mean loss over those whose label is not
/// negative, or over `*step_whole` where that is not zero.
void vocabulary_share(const Machine& machine, const std::int32_t* labels, std::size_t count,
                      const std::uint64_t* step_whole, float* share);

/// Enqueues: losses[i] of each row. Where `slopes` is not null, it becomes the gradient of the
/// logits, of the precision's elements and the same stride, padding zero; with floats it is the
/// logits' own memory, and losses are smoothed as SoftmaxCrossEntropyTrain's.
void judge_rows(const Machine& machine, const LogitRows& rows, const std::int32_t* labels,
                const float* share, float smoothing, TokenLoss* losses, std::byte* slopes);

/// Enqueues: sums[v] = or, where `adds`, += the sum of column v of `slopes`, in the rows' order.
void sum_columns(const Machine& machine, const LogitRows& rows, const std::byte* slopes,
                 float* sums, bool adds);

/// Enqueues: result = the sum of losses, times *share unless that is null, and of right
/// predictions, in the tokens' order.
void write_vocabulary_result(const Machine& machine, const TokenLoss* losses, std::size_t count,
                             const float* share, float* result);

}  // namespace spillway::cuda
