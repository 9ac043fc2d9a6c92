#include "src/cli/flags/learning_rate_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <string>
#include <variant>

#include "src/cli/flags/number_checks.h"
#include "src/train/settings.h"

namespace spillway::cli {
namespace {

constexpr const char* kTraining = "Training";
constexpr float kRateOfAdam = 0.001F;  // as PyTorch's

void add_step_to(CLI::App& command, LearningRateOptions& options) {
  command
      .add_option("--step-every", options.step_every,
                  "--schedule step: steps between two decays of the learning rate")
      ->check(check_whole_number)
      ->group(kTraining);
  command
      .add_option("--step-factor", options.step_factor,
                  "--schedule step, multistep: decay factor (gamma)")
      ->check(within(kStepFactorRange))
      ->capture_default_str()
      ->group(kTraining);
  command
      .add_option("--milestones", options.milestones,
                  "--schedule multistep: steps at which the learning rate decays, such as "
                  "3000,6000")
      ->delimiter(',')
      ->check(check_whole_number_from_one)
      ->group(kTraining);
}

void add_cosine_to(CLI::App& command, LearningRateOptions& options) {
  command
      .add_option("--final-lr", options.final_rate,
                  "--schedule cosine: minimum learning rate, used from the last step on")
      ->check(within(kLearningRateRange))
      ->capture_default_str()
      ->group(kTraining);
  command
      .add_option("--cosine-steps", options.cosine_steps,
                  "--schedule cosine: length in steps, including the warm-up (default: the whole "
                  "training)")
      ->check(check_whole_number)
      ->group(kTraining);
}

}  // namespace

void LearningRateFlags::add_to(CLI::App& command) {
  command
      .add_option(
          "--lr", options.rate,
          "Initial learning rate (default: sgd 0.01, adam and adamw 0.001; --resume takes the "
          "checkpoint's)")
      ->check(within(kLearningRateRange))
      ->group(kTraining);
  command
      .add_option("--lr-batch", rate_batch,
                  "Linear rate scaling: --lr is for batches of this size, and is multiplied by "
                  "--batch over it (default: --lr is the rate)")
      ->check(check_whole_number_from_one)
      ->type_name("N")
      ->group(kTraining);
  command
      .add_option_function<std::string>(
          "--schedule",
          [this](const std::string& name) { options.schedule = find_schedule(name).value(); },
          "Learning rate schedule: constant, step (decay every --step-every steps), multistep "
          "(decay at the --milestones), or cosine "
          "annealing to --final-lr (default: constant)")
      ->check(CLI::IsMember({"constant", "step", "multistep", "cosine"}))
      ->group(kTraining);
  command.add_option("--warmup-steps", options.warmup_steps, "Steps of linear warm-up")
      ->check(check_whole_number)
      ->group(kTraining);
  add_step_to(command, options);
  add_cosine_to(command, options);
}

void LearningRateFlags::choose_rate(const CLI::App& command, const OptimizerOptions& optimizer,
                                    std::size_t batch) {
  if (command.count("--lr") == 0 && std::holds_alternative<AdamOptions>(optimizer)) {
    options.rate = kRateOfAdam;
  }
  if (rate_batch == 0) return;
  const double rate = static_cast<double>(options.rate) * static_cast<double>(batch) /
                      static_cast<double>(rate_batch);
  if (rate > static_cast<double>(kLearningRateRange.most)) {
    throw CLI::ValidationError{
        "--lr-batch", "makes the learning rate larger than it can be; give a smaller --lr"};
  }
  options.rate = static_cast<float>(rate);
}

void LearningRateFlags::restore(const CLI::App& command, const LearningRateOptions& kept) {
  const auto take = [&](const char* flag, auto LearningRateOptions::*field) {
    if (command.count(flag) == 0) options.*field = kept.*field;
  };
  take("--lr", &LearningRateOptions::rate);
  take("--schedule", &LearningRateOptions::schedule);
  take("--warmup-steps", &LearningRateOptions::warmup_steps);
  take("--step-every", &LearningRateOptions::step_every);
  take("--step-factor", &LearningRateOptions::step_factor);
  take("--milestones", &LearningRateOptions::milestones);
  take("--final-lr", &LearningRateOptions::final_rate);
  take("--cosine-steps", &LearningRateOptions::cosine_steps);
}

void LearningRateFlags::expect_fitting(const CLI::App& command) const {
  const auto refuse_unless = [&](Schedule schedule, const char* flag) {
    if (options.schedule == schedule || command.count(flag) == 0) return;
    throw CLI::ValidationError{flag, "is for --schedule " + name_of(schedule)};
  };
  refuse_unless(Schedule::kStep, "--step-every");
  refuse_unless(Schedule::kMultiStep, "--milestones");
  if (options.schedule != Schedule::kMultiStep) refuse_unless(Schedule::kStep, "--step-factor");
  refuse_unless(Schedule::kCosine, "--final-lr");
  refuse_unless(Schedule::kCosine, "--cosine-steps");
  if (options.schedule == Schedule::kStep && options.step_every == 0) {
    throw CLI::ValidationError{"--schedule step", "needs --step-every N, N above 0"};
  }
  if (options.schedule != Schedule::kMultiStep) return;
  if (options.milestones.empty()) {
    throw CLI::ValidationError{"--schedule multistep", "needs --milestones STEP,STEP..."};
  }
  if (!std::ranges::is_sorted(options.milestones, std::less_equal{})) {
    throw CLI::ValidationError{"--milestones", "are steps, each above the one before"};
  }
}

}  // namespace spillway::cli
