#include "src/ops/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "um/error.h"

namespace spillway {
namespace {

double decayed_rate(const LearningRateOptions& options, std::uint64_t times) {
  return static_cast<double>(options.rate) *
         std::pow(static_cast<double>(options.step_factor), static_cast<double>(times));
}

double multi_step_rate(const LearningRateOptions& options, std::uint64_t step) {
  const auto passed = std::ranges::count_if(
      options.milestones, [&](std::uint64_t milestone) { return milestone <= step; });
  return decayed_rate(options, static_cast<std::uint64_t>(passed));
}

double step_rate(const LearningRateOptions& options, std::uint64_t step) {
  um::expects(options.step_every > 0, "a schedule of steps says how long they are");
  return decayed_rate(options, step / options.step_every);
}

double cosine_rate(const LearningRateOptions& options, std::uint64_t step) {
  const auto first = static_cast<double>(options.rate);
  const auto last = static_cast<double>(options.final_rate);
  if (step < options.warmup_steps) return first;
  if (step >= options.cosine_steps) return last;
  const double part = static_cast<double>(step - options.warmup_steps) /
                      static_cast<double>(options.cosine_steps - options.warmup_steps);
  return last + (first - last) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

double scheduled_rate(const LearningRateOptions& options, std::uint64_t step) {
  switch (options.schedule) {
    case Schedule::kConstant:
      break;
    case Schedule::kStep:
      return step_rate(options, step);
    case Schedule::kMultiStep:
      return multi_step_rate(options, step);
    case Schedule::kCosine:
      return cosine_rate(options, step);
  }
  return static_cast<double>(options.rate);
}

// "steps 101 to 200 are trained at learning rate 0", counted from 1.
std::string steps_at(std::uint64_t first, std::uint64_t last, float rate) {
  const std::string end = std::to_string(last);
  return (last - first == 1 ? "step " + end + " is"
                            : "steps " + std::to_string(first + 1) + " to " + end + " are") +
         " trained at " + (rate > 0 ? "its final learning rate" : "learning rate 0");
}

// The first of the steps from `first` to before `last` whose rate is 0, after which no other comes;
// `last` where there is none.
std::uint64_t first_without_rate(const LearningRateOptions& options, std::uint64_t first,
                                 std::uint64_t last) {
  while (first < last) {
    const std::uint64_t middle = first + (last - first) / 2;
    if (learning_rate(options, middle) == 0) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return last;
}

}  // namespace

float learning_rate(const LearningRateOptions& options, std::uint64_t step) {
  double rate = scheduled_rate(options, step);
  if (step < options.warmup_steps) {
    rate *= (static_cast<double>(step) + 1) / static_cast<double>(options.warmup_steps);
  }
  return static_cast<float>(rate);
}

std::optional<std::string> schedule_warning(const LearningRateOptions& options, std::uint64_t first,
                                            std::uint64_t last) {
  if (options.rate == 0 || first >= last) return std::nullopt;
  if (options.schedule == Schedule::kCosine) {
    const std::uint64_t end = std::max(first, options.cosine_steps);
    if (end >= last || (options.final_rate > 0 && first == 0)) return std::nullopt;
    return "the cosine schedule ends with step " + std::to_string(options.cosine_steps) + ": " +
           steps_at(end, last, options.final_rate) + "; give --cosine-steps " +
           std::to_string(last) + (options.final_rate > 0 ? "" : ", a --final-lr above 0,") +
           " or another --schedule";
  }
  const std::uint64_t end = first_without_rate(options, first, last);
  if (end >= last) return std::nullopt;
  const bool is_step = options.schedule == Schedule::kStep;
  return "the schedule has decayed to 0: " + steps_at(end, last, 0) + "; give " +
         (is_step ? "a greater --step-every" : "fewer --milestones") +
         ", a greater --step-factor, or another --schedule";
}

LearningRateOptions for_whole_training(LearningRateOptions options, std::uint64_t steps) {
  if (options.schedule != Schedule::kCosine) return options;
  if (options.cosine_steps == 0) options.cosine_steps = steps;
  if (options.warmup_steps > 0 && options.warmup_steps >= options.cosine_steps) {
    throw um::Error{"a warm-up of " + std::to_string(options.warmup_steps) +
                    " steps leaves nothing of a cosine of " + std::to_string(options.cosine_steps) +
                    "; give a smaller --warmup-steps"};
  }
  return options;
}

}  // namespace spillway
