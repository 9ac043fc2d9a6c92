#include "src/ops/optimizers.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "src/ops/backend.h"

namespace spillway {
namespace {

constexpr std::array kOptimizers{
    Optimizer{"sgd", SgdOptions{}, 0.01F, "one state value per parameter"},
    Optimizer{"adam", AdamOptions{}, 0.001F, "two per parameter"},
    Optimizer{"adamw", AdamOptions{.weight_decay = 0.01F, .decoupled = true}, 0.001F,
              "two per parameter"},
    Optimizer{"rmsprop", RmspropOptions{}, 0.01F, "one, or with a --momentum two"},
    Optimizer{"lion", LionOptions{}, 1e-4F, "one"}};

}  // namespace

std::span<const Optimizer> optimizers() { return kOptimizers; }

const Optimizer* find_optimizer(std::string_view name) {
  const auto* const found = std::ranges::find(kOptimizers, name, &Optimizer::name);
  return found == kOptimizers.end() ? nullptr : found;
}

std::string_view name_of(const OptimizerOptions& options) {
  return std::visit([](const auto& rule) { return rule.name(); }, options);
}

std::span<const StateTensor> states_of(const OptimizerOptions& options) {
  return with_rule(options, []<class Rule>(const Rule&, auto count) {
    return std::span<const StateTensor>{Rule::kStates}.first(count);
  });
}

SgdRates SgdOptions::rates(const StepContext& context) const {
  return {.decay = weight_decay,
          .momentum = momentum,
          .rate = context.learning_rate,
          .nesterov = nesterov};
}

AdamRates AdamOptions::rates(const StepContext& context) const {
  const double steps = static_cast<double>(context.step) + 1;
  const auto rate = static_cast<double>(context.learning_rate);
  const auto decay = static_cast<double>(weight_decay);
  return {.decay = decoupled ? 0.F : weight_decay,
          .shrink = decoupled ? static_cast<float>(1 - rate * decay) : 1.F,
          .new_first = static_cast<float>(1 - beta1),
          .old_second = static_cast<float>(beta2),
          .new_second = static_cast<float>(1 - beta2),
          .step_size = static_cast<float>(rate / (1 - std::pow(beta1, steps))),
          .root = static_cast<float>(std::sqrt(1 - std::pow(beta2, steps))),
          .epsilon = epsilon};
}

RmspropRates RmspropOptions::rates(const StepContext& context) const {
  return {.decay = weight_decay,
          .old_square = static_cast<float>(alpha),
          .new_square = static_cast<float>(1 - alpha),
          .epsilon = epsilon,
          .momentum = momentum,
          .rate = context.learning_rate};
}

LionRates LionOptions::rates(const StepContext& context) const {
  const auto rate = static_cast<double>(context.learning_rate);
  return {.shrink = static_cast<float>(1 - rate * static_cast<double>(weight_decay)),
          .new_direction = static_cast<float>(1 - beta1),
          .new_average = static_cast<float>(1 - beta2),
          .rate = context.learning_rate};
}

}  // namespace spillway
