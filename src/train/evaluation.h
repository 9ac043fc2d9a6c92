#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "src/io/data/dataset.h"
#include "src/train/checkpoint/checkpoint.h"
#include "src/train/session.h"

namespace spillway {

/// What a network makes of labelled samples.
struct Evaluation {
  double loss = 0;      ///< mean over the samples: the images, or the pixels that have a label
  double accuracy = 0;  ///< part of the samples whose prediction was right
  /// Part of the images whose label is among the five likeliest classes; nothing where an image has
  /// several labels, and where there are no more than five classes.
  std::optional<double> top5 = {};
  /// Images by label and prediction, row by row: of such images, and where it was asked for.
  std::vector<std::uint64_t> confusion = {};
};

/// What to say where the loss is not finite.
inline constexpr const char* kDivergedEvaluation =
    "the loss of the evaluation is not a number: training has diverged; try a smaller --lr";

/// Of text: e to the mean loss of a token.
[[nodiscard]] inline double perplexity_of(const Evaluation& evaluation) {
  return std::exp(evaluation.loss);
}

/// What is made of one image, of those that have a label and can be read.
struct JudgedImage {
  std::size_t index = 0;  ///< in the data set
  std::int32_t label = 0;
  JudgedSample judged;
  std::span<const float> logits;  ///< empty unless StepOptions::gives_logits; valid in the call
};
using OnJudged = std::function<void(const JudgedImage&)>;

/// How to evaluate.
struct EvaluateOptions {
  bool has_confusion = false;
  std::size_t loader_threads = 0;  ///< as TrainOptions has it
  OnJudged on_judged = {};         ///< may be empty
  /// Called before each batch; may be empty.
  std::function<bool()> is_stopped = {};
};

/// The loss and accuracy of `session` on all of `data`, with the averages of parameters where it
/// keeps some. Throws: Interrupted between two steps when `is_stopped` returns true, or in one when
/// the session is to stop.
[[nodiscard]] Evaluation evaluate(Session& session, const Dataset& data,
                                  const EvaluateOptions& options = {});

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
