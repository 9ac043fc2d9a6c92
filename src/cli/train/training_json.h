#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "src/train/trainer.h"
#include "src/train/training_summary.h"

namespace spillway::cli {

/// What was trained, how, and what it came to: the summary of train --json, but for the times,
/// which the report adds. `far` is far memory as the user named it.
[[nodiscard]] nlohmann::json training_json(const Trainer& trainer, const TrainingSummary& summary,
                                           const std::string& far);

}  // namespace spillway::cli
