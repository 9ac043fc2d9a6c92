#include "src/cli/flags/optimizer_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "src/cli/flags/flag_values.h"
#include "src/train/settings.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

constexpr float kMomentumOfSgd = 0.9F;
constexpr float kDecayOfAdamW = 0.01F;  // as PyTorch's

bool is_given(const CLI::App& command, const char* flag) { return command.count(flag) > 0; }

// Takes over what `command` was not given.
struct Restore {
  OptimizerFlags& flags;
  const CLI::App& command;

  template <class Number>
  void take(const char* flag, Number& number, const Number& kept) const {
    if (!is_given(command, flag)) number = kept;
  }
  void take_optional(const char* flag, std::optional<float>& number, float kept) const {
    if (!is_given(command, flag)) number = kept;
  }
  template <class Options>
  void take_decay(const Options& kept) const {
    take_optional("--weight-decay", flags.weight_decay, kept.weight_decay);
    take("--weight-decay-all", flags.decays_all, kept.decays_all);
  }
  void operator()(const SgdOptions& kept) const {
    take_optional("--momentum", flags.momentum, kept.momentum);
    take("--nesterov", flags.nesterov, kept.nesterov);
    take("--clip-norm", flags.clip_norm, kept.clip_norm);
    take_decay(kept);
  }
  void operator()(const AdamOptions& kept) const {
    take("--beta1", flags.beta1, kept.beta1);
    take("--beta2", flags.beta2, kept.beta2);
    take("--epsilon", flags.epsilon, kept.epsilon);
    take("--clip-norm", flags.clip_norm, kept.clip_norm);
    take_decay(kept);
  }
  void operator()(const RmspropOptions& kept) const {
    if (is_given(command, "--momentum") && (flags.momentum > 0) != (kept.momentum > 0)) {
      throw um::Error{
          "the checkpoint is of a training with rmsprop " +
          std::string{kept.momentum > 0 ? "and a momentum" : "without a momentum"} +
          ", which is state that cannot come or go; leave out --momentum, or give another "
          "--checkpoint folder"};
    }
    take_optional("--momentum", flags.momentum, kept.momentum);
    take("--alpha", flags.alpha, kept.alpha);
    take("--epsilon", flags.epsilon, kept.epsilon);
    take("--clip-norm", flags.clip_norm, kept.clip_norm);
    take_decay(kept);
  }
};

constexpr float kRateOfAdam = 0.001F;  // as PyTorch's

void add_step_to(CLI::App& command, LearningRateOptions& options) {
  command
      .add_option("--step-every", options.step_every,
                  "--schedule step: steps between two decays of the learning rate")
      ->check(check_whole_number)
      ->group(kTrainingHeading);
  command
      .add_option("--step-factor", options.step_factor,
                  "--schedule step, multistep: decay factor (gamma)")
      ->check(within(kStepFactorRange))
      ->capture_default_str()
      ->group(kTrainingHeading);
  command
      .add_option("--milestones", options.milestones,
                  "--schedule multistep: steps at which the learning rate decays, such as "
                  "3000,6000")
      ->delimiter(',')
      ->check(check_whole_number_from_one)
      ->group(kTrainingHeading);
}

void add_cosine_to(CLI::App& command, LearningRateOptions& options) {
  command
      .add_option("--final-lr", options.final_rate,
                  "--schedule cosine: minimum learning rate, used from the last step on")
      ->check(within(kLearningRateRange))
      ->capture_default_str()
      ->group(kTrainingHeading);
  command
      .add_option("--cosine-steps", options.cosine_steps,
                  "--schedule cosine: length in steps, including the warm-up (default: the whole "
                  "training)")
      ->check(check_whole_number)
      ->group(kTrainingHeading);
}

}  // namespace

void OptimizerFlags::add_choice_to(CLI::App& app) {
  app.add_option("--optimizer", name,
                 "sgd (one state value per parameter), adam or adamw (two per parameter), rmsprop "
                 "(one, or with a --momentum two)")
      ->check(CLI::IsMember({"sgd", "adam", "adamw", "rmsprop"}))
      ->capture_default_str()
      ->group("What is trained");
  app.add_option("--clip-norm", clip_norm,
                 "Scale all gradients of a step down to this norm, where theirs together is larger "
                 "(default: not). Updates then wait for all gradients, which takes memory")
      ->check(within(kClipNormRange))
      ->group("What is trained");
}

void OptimizerFlags::add_rates_to(CLI::App& app) {
  app.add_option("--momentum", momentum,
                 "sgd, rmsprop: momentum coefficient (default: sgd 0.9, rmsprop 0)")
      ->check(within(kMomentumRange))
      ->group(kTrainingHeading);
  app.add_flag("--nesterov", nesterov, "sgd: Nesterov momentum")->group(kTrainingHeading);
  app.add_option("--beta1", beta1, "adam, adamw: decay rate of the first moment")
      ->check(within(kBetaRange))
      ->capture_default_str()
      ->group(kTrainingHeading);
  app.add_option("--beta2", beta2, "adam, adamw: decay rate of the second moment")
      ->check(within(kBetaRange))
      ->capture_default_str()
      ->group(kTrainingHeading);
  app.add_option("--alpha", alpha, "rmsprop: decay rate of the mean of squares")
      ->check(within(kBetaRange))
      ->capture_default_str()
      ->group(kTrainingHeading);
  app.add_option("--epsilon", epsilon,
                 "adam, adamw, rmsprop: term added to the denominator for numerical stability")
      ->check(within(kEpsilonRange))
      ->capture_default_str()
      ->group(kTrainingHeading);
  app.add_option(
         "--weight-decay", weight_decay,
         "Weight decay: an L2 penalty, or decoupled decay with adamw. It applies to weights and "
         "embeddings, not to biases, norms and class tokens (default: 0; adamw 0.01)")
      ->check(within(kWeightDecayRange))
      ->group(kTrainingHeading);
  app.add_flag("--weight-decay-all", decays_all,
               "Weight decay applies to biases, norms and class tokens, too, as in PyTorch without "
               "parameter groups")
      ->group(kTrainingHeading);
}

OptimizerOptions OptimizerFlags::options() const {
  if (name == "sgd") {
    return SgdOptions{.momentum = momentum.value_or(kMomentumOfSgd),
                      .weight_decay = weight_decay.value_or(0),
                      .nesterov = nesterov,
                      .clip_norm = clip_norm,
                      .decays_all = decays_all};
  }
  if (name == "rmsprop") {
    return RmspropOptions{.alpha = alpha,
                          .epsilon = epsilon,
                          .momentum = momentum.value_or(0),
                          .weight_decay = weight_decay.value_or(0),
                          .clip_norm = clip_norm,
                          .decays_all = decays_all};
  }
  const bool decoupled = name == "adamw";
  return AdamOptions{.beta1 = beta1,
                     .beta2 = beta2,
                     .epsilon = epsilon,
                     .weight_decay = weight_decay.value_or(decoupled ? kDecayOfAdamW : 0),
                     .decoupled = decoupled,
                     .clip_norm = clip_norm,
                     .decays_all = decays_all};
}

void OptimizerFlags::restore(const CLI::App& command, const OptimizerOptions& kept) {
  if (is_given(command, "--optimizer") && name != name_of(kept)) {
    throw um::Error{"the checkpoint is of a training with --optimizer " + name_of(kept) +
                    "; give that, or another --checkpoint folder"};
  }
  name = name_of(kept);
  std::visit(Restore{*this, command}, kept);
}

void OptimizerFlags::expect_fitting(const CLI::App& command) const {
  struct Use {
    const char* flag;
    std::vector<std::string> optimizers;
  };
  const std::array uses{
      Use{"--momentum", {"sgd", "rmsprop"}}, Use{"--nesterov", {"sgd"}},
      Use{"--beta1", {"adam", "adamw"}},     Use{"--beta2", {"adam", "adamw"}},
      Use{"--alpha", {"rmsprop"}},           Use{"--epsilon", {"adam", "adamw", "rmsprop"}}};
  for (const auto& [flag, optimizers] : uses) {
    if (!is_given(command, flag) || std::ranges::count(optimizers, name) > 0) continue;
    throw CLI::ValidationError{
        flag, fmt::format("is for --optimizer {}; {} has {}", fmt::join(optimizers, " or "), name,
                          name.starts_with("adam") ? "--beta1" : "--momentum")};
  }
  if (name == "sgd" && nesterov && momentum == 0.F) {
    throw CLI::ValidationError{"--nesterov", "needs a --momentum above 0"};
  }
}

void LearningRateFlags::add_to(CLI::App& command) {
  command
      .add_option(
          "--lr", options.rate,
          "Initial learning rate (default: sgd 0.01, adam and adamw 0.001; --resume takes the "
          "checkpoint's)")
      ->check(within(kLearningRateRange))
      ->group(kTrainingHeading);
  command
      .add_option("--lr-batch", rate_batch,
                  "Linear rate scaling: --lr is for batches of this size, and is multiplied by "
                  "--batch over it (default: --lr is the rate)")
      ->check(check_whole_number_from_one)
      ->type_name("N")
      ->group(kTrainingHeading);
  command
      .add_option_function<std::string>(
          "--schedule",
          [this](const std::string& name) { options.schedule = find_schedule(name).value(); },
          "Learning rate schedule: constant, step (decay every --step-every steps), multistep "
          "(decay at the --milestones), or cosine "
          "annealing to --final-lr (default: constant)")
      ->check(CLI::IsMember({"constant", "step", "multistep", "cosine"}))
      ->group(kTrainingHeading);
  command.add_option("--warmup-steps", options.warmup_steps, "Steps of linear warm-up")
      ->check(check_whole_number)
      ->group(kTrainingHeading);
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
