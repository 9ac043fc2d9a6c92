#include "src/cli/flags/optimizer_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "src/cli/flags/flag_values.h"
#include "src/train/checkpoint/settings.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

bool is_given(const CLI::App& command, const char* flag) { return command.count(flag) > 0; }

// Returns "--weight-decay" for "weight_decay".
std::string flag_of(std::string_view name) {
  std::string flag = "--" + std::string{name};
  std::ranges::replace(flag, '_', '-');
  return flag;
}

// The optimizers that have a hyper-parameter, with their defaults.
struct Uses {
  std::vector<std::string_view> names;
  std::vector<std::string> defaults;

  explicit Uses(std::string_view parameter) {
    for (const Optimizer& optimizer : optimizers()) {
      const auto note = [&](const auto& row, const auto& number) {
        if (row.name != parameter) return;
        names.push_back(optimizer.name);
        defaults.push_back(fmt::format("{}", number));
      };
      std::visit([&](const auto& rule) { for_each_hyper_parameter(note, rule); },
                 optimizer.defaults);
    }
  }
  [[nodiscard]] bool are_all() const { return names.size() == optimizers().size(); }
  [[nodiscard]] bool have_one_default() const {
    return std::ranges::count(defaults, defaults.front()) == std::ssize(defaults);
  }
  // Returns "sgd 0.9, rmsprop 0", without those that have the number `known`.
  [[nodiscard]] std::string numbers(std::string_view known = {}) const {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (defaults[i] == known) continue;
      if (!text.empty()) text += ", ";
      text += fmt::format("{} {}", names[i], defaults[i]);
    }
    return text;
  }
  [[nodiscard]] std::string text() const {
    return are_all() ? defaults.front() + "; " + numbers(defaults.front()) : numbers();
  }
};

// CLI11's flags of std::optional are counts.
void add_switch_to(CLI::App& app, const std::string& flag, std::optional<bool>& given,
                   const std::string& help) {
  app.add_flag_function(
         flag, [&given](std::int64_t count) { given = count > 0; }, help)
      ->group(kTrainingHeading);
}

template <class Number>
void add_hyper_parameter_to(CLI::App& app, const HyperParameter<Number>& row,
                            std::optional<Number>& given) {
  const Uses uses{row.name};
  std::string help = (uses.are_all() ? "" : fmt::format("{}: ", fmt::join(uses.names, ", "))) +
                     std::string{row.help};
  if constexpr (std::is_same_v<Number, bool>) {
    add_switch_to(app, flag_of(row.name), given, help);
  } else {
    if (!uses.have_one_default()) help += " (default: " + uses.text() + ")";
    auto* const option = app.add_option(flag_of(row.name), given, help);
    option->check(within(row.range))->group(kTrainingHeading);
    if (uses.have_one_default()) option->default_str(uses.defaults.front());
  }
}

// Returns "sgd (one state value per parameter), adam or adamw (two per parameter), ...".
std::string optimizers_with_states() {
  std::string text;
  std::string_view state;
  for (const Optimizer& each : optimizers()) {
    if (each.state == state) {
      text.insert(text.rfind(" ("), fmt::format(" or {}", each.name));
    } else {
      text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", each.name, each.state);
    }
    state = each.state;
  }
  return text;
}

// Returns "sgd 0.01, adam 0.001, ...".
std::string default_rates() {
  std::string text;
  for (const Optimizer& each : optimizers()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", each.name, each.learning_rate);
  }
  return text;
}

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
  std::vector<std::string> names;
  for (const Optimizer& each : optimizers()) names.emplace_back(each.name);
  app.add_option("--optimizer", name, optimizers_with_states())
      ->check(CLI::IsMember(names))
      ->capture_default_str()
      ->group("What is trained");
  app.add_option("--clip-norm", clip_norm,
                 "Scale all gradients of a step down to this norm, where theirs together is larger "
                 "(default: not). Updates then wait for all gradients, which takes memory")
      ->check(within(kClipNormRange))
      ->group("What is trained");
}

void OptimizerFlags::add_rates_to(CLI::App& app) {
  for_each_hyper_parameter(
      [&](const auto& row, auto& number) { add_hyper_parameter_to(app, row, number); }, given);
  add_switch_to(app, "--weight-decay-all", decays_all,
                "Weight decay applies to biases, norms and class tokens, too, as in PyTorch "
                "without parameter groups");
}

OptimizerOptions OptimizerFlags::options() const {
  OptimizerOptions options = kept ? *kept : find_optimizer(name)->defaults;
  std::visit(
      [&](auto& rule) {
        for_each_hyper_parameter([](const auto& /*row*/, auto& number,
                                    const auto& own) { number = own.value_or(number); },
                                 rule, given);
        rule.clip_norm = clip_norm.value_or(rule.clip_norm);
        rule.decays_all = decays_all.value_or(rule.decays_all);
      },
      options);
  return options;
}

void OptimizerFlags::restore(const CLI::App& command, const OptimizerOptions& options) {
  const std::string kept_name{name_of(options)};
  if (is_given(command, "--optimizer") && name != kept_name) {
    throw um::Error{"the checkpoint is of a training with --optimizer " + kept_name +
                    "; give that, or another --checkpoint folder"};
  }
  name = kept_name;
  kept = options;
  const std::size_t had = states_of(options).size();
  const std::size_t has = states_of(this->options()).size();
  if (had == has) return;
  throw um::Error{"the checkpoint is of a training with " + name +
                  (had > has ? " and a momentum" : " without a momentum") +
                  ", which is state that cannot come or go; leave out --momentum, or give another "
                  "--checkpoint folder"};
}

void OptimizerFlags::expect_fitting() const {
  std::string own_flag;  // the first
  const auto note = [&](const auto& row, const auto& /*number*/) {
    if (own_flag.empty()) own_flag = flag_of(row.name);
  };
  const OptimizerOptions own = options();
  std::visit([&](const auto& rule) { for_each_hyper_parameter(note, rule); }, own);
  const auto expect_use = [&](const auto& row, const auto& number) {
    const Uses uses{row.name};
    if (!number || std::ranges::count(uses.names, name) > 0) return;
    throw CLI::ValidationError{flag_of(row.name),
                               fmt::format("is for --optimizer {}; {} has {}",
                                           fmt::join(uses.names, " or "), name, own_flag)};
  };
  for_each_hyper_parameter(expect_use, given);
  const auto expect_momentum = [](const auto& rule) {
    if constexpr (requires { rule.nesterov; }) {
      if (rule.nesterov && rule.momentum == 0) {
        throw CLI::ValidationError{"--nesterov", "needs a --momentum above 0"};
      }
    }
  };
  std::visit(expect_momentum, own);
}

void LearningRateFlags::add_to(CLI::App& command) {
  command
      .add_option("--lr", options.rate, "Initial learning rate (default: " + default_rates() + ")")
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
  if (command.count("--lr") == 0) {
    options.rate = find_optimizer(name_of(optimizer))->learning_rate;
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
