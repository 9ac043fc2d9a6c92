#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway {

enum class Schedule {
  kConstant,
  kStep,       ///< multiplied by a factor every so many steps, as by PyTorch's StepLR
  kMultiStep,  ///< multiplied by a factor at each milestone, as by PyTorch's MultiStepLR
  kCosine      ///< falls along half a cosine, as by PyTorch's CosineAnnealingLR
};

/// The learning rate of each step of a training. A training that goes on from a checkpoint keeps
/// all of it.
struct LearningRateOptions {
  float rate = 0.01F;  ///< the rate that schedules begin with
  Schedule schedule = Schedule::kConstant;
  std::uint64_t warmup_steps = 0;  ///< in which the rate rises to the schedule's, from nearly zero
  std::uint64_t step_every = 0;    ///< kStep: steps. Requires: not zero
  float step_factor = 0.1F;        ///< kStep, kMultiStep
  std::vector<std::uint64_t> milestones = {};  ///< kMultiStep: steps, each above the one before
  float final_rate = 0;                        ///< kCosine: of all steps after the cosine's
  std::uint64_t cosine_steps = 0;              ///< kCosine: warm-up included
  friend bool operator==(const LearningRateOptions&, const LearningRateOptions&) = default;
};

/// The rate of step `step`, counted from 0 over the whole training: that of the schedule times
/// min(1, (step + 1) / warmup_steps), where a cosine waits for the end of the warm-up. Reckons in
/// doubles and rounds once.
[[nodiscard]] float learning_rate(const LearningRateOptions& options, std::uint64_t step);

/// Returns a warning about the steps from number `first`, counted from 0, to before `last`, if the
/// schedule leaves some of them the rate 0, or if `first` is not 0 and a cosine ends before `last`.
/// It names the flag that changes that. Returns nothing if the rate is 0 from the beginning.
[[nodiscard]] std::optional<std::string> schedule_warning(const LearningRateOptions& options,
                                                          std::uint64_t first, std::uint64_t last);

/// `options` for a training of `steps` steps: a cosine whose length was not given is as long.
/// Throws: um::Error when the warm-up leaves nothing of it.
[[nodiscard]] LearningRateOptions for_whole_training(LearningRateOptions options,
                                                     std::uint64_t steps);

}  // namespace spillway
