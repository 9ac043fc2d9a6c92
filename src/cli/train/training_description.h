#pragma once

#include "src/cli/train/training_flags.h"
#include "src/train/trainer.h"

namespace spillway::cli {

/// Tells the user what is about to be trained, on what, within which memory and by which plan.
void describe_training(const Trainer& trainer, const TrainingFlags& flags);

}  // namespace spillway::cli
