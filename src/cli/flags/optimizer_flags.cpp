#include "src/cli/flags/optimizer_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string>
#include <variant>
#include <vector>

#include "src/cli/flags/number_checks.h"
#include "src/train/settings.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

constexpr const char* kOptimizer = "Training";
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
      ->group(kOptimizer);
  app.add_flag("--nesterov", nesterov, "sgd: Nesterov momentum")->group(kOptimizer);
  app.add_option("--beta1", beta1, "adam, adamw: decay rate of the first moment")
      ->check(within(kBetaRange))
      ->capture_default_str()
      ->group(kOptimizer);
  app.add_option("--beta2", beta2, "adam, adamw: decay rate of the second moment")
      ->check(within(kBetaRange))
      ->capture_default_str()
      ->group(kOptimizer);
  app.add_option("--alpha", alpha, "rmsprop: decay rate of the mean of squares")
      ->check(within(kBetaRange))
      ->capture_default_str()
      ->group(kOptimizer);
  app.add_option("--epsilon", epsilon,
                 "adam, adamw, rmsprop: term added to the denominator for numerical stability")
      ->check(within(kEpsilonRange))
      ->capture_default_str()
      ->group(kOptimizer);
  app.add_option(
         "--weight-decay", weight_decay,
         "Weight decay: an L2 penalty, or decoupled decay with adamw. It applies to weights and "
         "embeddings, not to biases, norms and class tokens (default: 0; adamw 0.01)")
      ->check(within(kWeightDecayRange))
      ->group(kOptimizer);
  app.add_flag("--weight-decay-all", decays_all,
               "Weight decay applies to biases, norms and class tokens, too, as in PyTorch without "
               "parameter groups")
      ->group(kOptimizer);
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

}  // namespace spillway::cli
