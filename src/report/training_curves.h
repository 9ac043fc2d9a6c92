#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

#include "src/report/training_log.h"

namespace spillway {

/// Points that a curve has at most.
inline constexpr std::size_t kMostPoints = 600;

/// What the page draws of a training: {"steps", "first_step", "last_step", "said": [sentence],
/// "curves": {figure: [[step, mean, min, max]]}, "evaluations": [{"step", "epoch", figure:
/// number}]}. Figures are those of kStepFigures and kEvaluationFigures that were told. Of more than
/// kMostPoints steps, neighbours are one point, at the last one's step. What is no number is left
/// out.
[[nodiscard]] nlohmann::json training_data(const TrainingLog& log);

}  // namespace spillway
