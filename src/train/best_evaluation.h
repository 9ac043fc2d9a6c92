#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "src/train/evaluation.h"

namespace spillway {

/// The best evaluation of a training so far, and how long ago that was: what keeping the best
/// checkpoint and ending early depend on. It goes into checkpoints.
struct BestEvaluation {
  std::uint64_t step = 0;
  double loss = 0;
  double accuracy = 0;
  std::uint64_t evaluations_since = 0;  ///< none of which was better
  friend bool operator==(const BestEvaluation&, const BestEvaluation&) = default;
};

/// Takes an evaluation into account; returns whether it is the best. Of two with the same accuracy
/// the one with the lower loss is better; with `by_loss`, of texts, the loss alone counts.
inline bool take_evaluation(std::optional<BestEvaluation>& best, std::uint64_t step,
                            const Evaluation& evaluation, bool by_loss) {
  if (!std::isfinite(evaluation.loss)) {  // worse than any other
    if (best) ++best->evaluations_since;
    return false;
  }
  const bool is_even = best && (by_loss || evaluation.accuracy == best->accuracy);
  const bool is_best =
      !best || (is_even ? evaluation.loss < best->loss : evaluation.accuracy > best->accuracy);
  if (is_best) {
    best = {.step = step, .loss = evaluation.loss, .accuracy = evaluation.accuracy};
  } else {
    ++best->evaluations_since;
  }
  return is_best;
}

}  // namespace spillway
