#include "src/ops/update_elements.h"

#include <cmath>

namespace spillway {

AdamRates adam_rates(const AdamOptions& options, const StepContext& context) {
  const double steps = static_cast<double>(context.step) + 1;
  const auto rate = static_cast<double>(context.learning_rate);
  const auto decay = static_cast<double>(options.weight_decay);
  return {.decay = options.decoupled ? 0.F : options.weight_decay,
          .shrink = options.decoupled ? static_cast<float>(1 - rate * decay) : 1.F,
          .new_first = static_cast<float>(1 - options.beta1),
          .old_second = static_cast<float>(options.beta2),
          .new_second = static_cast<float>(1 - options.beta2),
          .step_size = static_cast<float>(rate / (1 - std::pow(options.beta1, steps))),
          .root = static_cast<float>(std::sqrt(1 - std::pow(options.beta2, steps))),
          .epsilon = options.epsilon};
}

RmspropRates rmsprop_rates(const RmspropOptions& options, const StepContext& context) {
  return {.decay = options.weight_decay,
          .old_square = static_cast<float>(options.alpha),
          .new_square = static_cast<float>(1 - options.alpha),
          .epsilon = options.epsilon,
          .momentum = options.momentum,
          .rate = context.learning_rate};
}

}  // namespace spillway
