#include "src/train/checkpoint/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <variant>

#include "src/train/checkpoint/hyper_parameters.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

using nlohmann::json;
using prefetch::JsonView;

template <class Number>
std::string complaint_about(const SettingRange<Number>& range, Number number) {
  if (range.is_too_small(number)) {
    return fmt::format("is {} {}", range.is_above_least ? "not above" : "below", range.least);
  }
  if (range.is_too_large(number)) {
    return fmt::format("is {} {}", range.is_below_most ? "not below" : "above", range.most);
  }
  return {};
}

constexpr std::array kSchedules{Schedule::kConstant, Schedule::kStep, Schedule::kMultiStep,
                                Schedule::kCosine};

template <class Number>
Number read_real(const JsonView& view, const SettingRange<Number>& range) {
  const double number = view.number();
  if (number > static_cast<double>(std::numeric_limits<Number>::max())) {
    throw view.error("is too large");
  }
  const auto value = static_cast<Number>(number);
  const std::string wrong = complaint(range, value);
  if (!wrong.empty()) throw view.error(wrong);
  return value;
}

json json_of(float number) { return um::shortest_decimal(number); }
template <class Number>
json json_of(Number number) {
  return number;
}

bool read_setting(const JsonView& view, const SettingRange<bool>& /*range*/) {
  return view.boolean();
}

std::vector<std::uint64_t> read_milestones(const JsonView& view) {
  const JsonView list = view.at("milestones");
  std::vector<std::uint64_t> milestones;
  for (std::size_t i = 0; i < list.size(); ++i) milestones.push_back(list.at(i).integer());
  if (milestones.empty() || milestones.front() == 0 ||
      !std::ranges::is_sorted(milestones, std::less_equal{})) {
    throw list.error("are not steps, each above the one before");
  }
  return milestones;
}

// Checkpoints of before know nothing of it; 0 is none.
float read_clip_norm(const JsonView& view) {
  if (!view.has("clip_norm") || view.at("clip_norm").number() == 0) return 0;
  return read_setting(view.at("clip_norm"), kClipNormRange);
}

std::string names_of_optimizers() {
  std::vector<std::string_view> names;
  for (const Optimizer& each : optimizers()) names.push_back(each.name);
  const std::string_view last = names.back();
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

}  // namespace

std::string complaint(const SettingRange<float>& range, float number) {
  return complaint_about(range, number);
}

std::string complaint(const SettingRange<double>& range, double number) {
  return complaint_about(range, number);
}

std::uint64_t read_setting(const JsonView& view, const SettingRange<std::uint64_t>& range) {
  const std::uint64_t number = view.integer(range.most);
  if (range.is_too_small(number)) throw view.error("is zero");
  return number;
}

float read_setting(const JsonView& view, const SettingRange<float>& range) {
  return read_real(view, range);
}

double read_setting(const JsonView& view, const SettingRange<double>& range) {
  return read_real(view, range);
}

std::string name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::kConstant:
      break;
    case Schedule::kStep:
      return "step";
    case Schedule::kMultiStep:
      return "multistep";
    case Schedule::kCosine:
      return "cosine";
  }
  return "constant";
}

std::optional<Schedule> find_schedule(const std::string& name) {
  for (const Schedule schedule : kSchedules) {
    if (name_of(schedule) == name) return schedule;
  }
  return std::nullopt;
}

json to_json(const OptimizerOptions& optimizer) {
  return std::visit(
      [](const auto& rule) {
        json object{{"name", rule.name()}, {"clip_norm", um::shortest_decimal(rule.clip_norm)}};
        for_each_hyper_parameter(
            [&](const auto& row, const auto& number) { object[row.name] = json_of(number); }, rule);
        if (rule.decays_all) object["decays_all"] = true;
        return object;
      },
      optimizer);
}

OptimizerOptions read_optimizer(const JsonView& view) {
  const std::string name = view.at("name").string();
  const Optimizer* const found = find_optimizer(name);
  if (found == nullptr) {
    throw view.at("name").error("is '" + name + "', not " + names_of_optimizers());
  }
  OptimizerOptions options = found->defaults;
  std::visit(
      [&](auto& rule) {
        for_each_hyper_parameter(
            [&](const auto& row, auto& number) {
              number = read_setting(view.at(std::string{row.name}), row.range);
            },
            rule);
        rule.clip_norm = read_clip_norm(view);
        // Checkpoints of before know nothing of it.
        rule.decays_all = view.has("decays_all") && view.at("decays_all").boolean();
        if constexpr (requires { rule.nesterov; }) {
          if (rule.nesterov && rule.momentum == 0) {
            throw view.at("nesterov").error("goes with a momentum");
          }
        }
      },
      options);
  return options;
}

json to_json(const LearningRateOptions& options) {
  json object{{"name", name_of(options.schedule)},
              {"rate", um::shortest_decimal(options.rate)},
              {"warmup_steps", options.warmup_steps},
              {"step_every", options.step_every},
              {"step_factor", um::shortest_decimal(options.step_factor)},
              {"final_rate", um::shortest_decimal(options.final_rate)},
              {"cosine_steps", options.cosine_steps}};
  if (!options.milestones.empty()) object["milestones"] = options.milestones;
  return object;
}

LearningRateOptions read_learning_rate(const JsonView& view) {
  const std::string name = view.at("name").string();
  const std::optional<Schedule> schedule = find_schedule(name);
  if (!schedule)
    throw view.at("name").error("is '" + name + "', not constant, step, multistep or cosine");
  LearningRateOptions options{.rate = read_setting(view.at("rate"), kLearningRateRange),
                              .schedule = *schedule,
                              .warmup_steps = view.at("warmup_steps").integer(),
                              .step_every = view.at("step_every").integer(),
                              .step_factor = read_setting(view.at("step_factor"), kStepFactorRange),
                              .final_rate = read_setting(view.at("final_rate"), kLearningRateRange),
                              .cosine_steps = view.at("cosine_steps").integer()};
  if (options.schedule == Schedule::kMultiStep) options.milestones = read_milestones(view);
  if (options.schedule == Schedule::kStep && options.step_every == 0) {
    throw view.at("step_every").error("is zero");
  }
  if (options.schedule == Schedule::kCosine && options.cosine_steps > 0 &&
      options.warmup_steps >= options.cosine_steps) {
    throw view.at("warmup_steps").error("leaves nothing of the cosine");
  }
  return options;
}

json to_json(const ImageOptions& options) {
  const Augmentation& changes = options.augmentation;
  json object{{"crop_area", um::shortest_decimal(changes.least_area)},
              {"flip", um::shortest_decimal(changes.flip)},
              {"color_jitter", um::shortest_decimal(changes.color_jitter)},
              {"hue", um::shortest_decimal(changes.hue)},
              {"erase", um::shortest_decimal(changes.erase)},
              {"skips_broken", options.on_broken == OnBroken::kSkip}};
  if (options.eval_crop) object["eval_crop"] = um::shortest_decimal(*options.eval_crop);
  if (options.validation) object["validation"] = *options.validation;
  return object;
}

ImageOptions read_images(const JsonView& view) {
  const auto part = [&](const char* name) {
    return read_setting(view.at(name), kAugmentationRange);
  };
  ImageOptions options{
      .augmentation = {.least_area = part("crop_area"),
                       .flip = part("flip"),
                       .color_jitter = part("color_jitter"),
                       // Checkpoints of before know nothing of it.
                       .hue = view.has("hue") ? read_setting(view.at("hue"), kHueRange) : 0.F,
                       .erase = part("erase")},
      .on_broken = view.at("skips_broken").boolean() ? OnBroken::kSkip : OnBroken::kStop};
  if (view.has("eval_crop")) {
    options.eval_crop = read_setting(view.at("eval_crop"), kEvalCropRange);
  }
  if (view.has("validation")) {
    options.validation = read_setting(view.at("validation"), kValidationRange);
  }
  return options;
}

json to_json(const EvaluationRule& rule) {
  json object{{"patience", rule.patience}, {"keeps_best", rule.keeps_best}};
  if (rule.every) object["every"] = *rule.every;
  return object;
}

EvaluationRule read_evaluation_rule(const JsonView& view) {
  EvaluationRule rule{.patience = view.at("patience").integer(),
                      .keeps_best = view.at("keeps_best").boolean()};
  if (view.has("every")) rule.every = view.at("every").integer();
  return rule;
}

json to_json(const BestEvaluation& best) {
  return {{"step", best.step},
          {"loss", best.loss},
          {"accuracy", best.accuracy},
          {"evaluations_since", best.evaluations_since}};
}

std::optional<BestEvaluation> read_best(const JsonView& root) {
  if (!root.has("best")) return std::nullopt;
  const JsonView view = root.at("best");
  return BestEvaluation{
      .step = read_setting(view.at("step"), kStepRange),
      .loss = view.at("loss").number(),
      .accuracy = view.at("accuracy").number(),
      .evaluations_since = read_setting(view.at("evaluations_since"), kStepRange)};
}

json to_json(const LastEvaluation& last) {
  json object{{"step", last.step}, {"loss", last.loss}, {"accuracy", last.accuracy}};
  if (last.top5) object["top5"] = *last.top5;
  return object;
}

std::optional<LastEvaluation> read_last_evaluation(const JsonView& root) {
  if (!root.has("last_evaluation")) return std::nullopt;
  const JsonView view = root.at("last_evaluation");
  const JsonView loss = view.at("loss");
  LastEvaluation last{
      .step = read_setting(view.at("step"), kStepRange),
      .loss = loss.is_null() ? std::numeric_limits<double>::quiet_NaN() : loss.number(),
      .accuracy = view.at("accuracy").number()};
  if (view.has("top5")) last.top5 = view.at("top5").number();
  return last;
}

json to_json(const MixOptions& mixing) {
  return {{"mixup", um::shortest_decimal(mixing.mixup)},
          {"cutmix", um::shortest_decimal(mixing.cutmix)}};
}

MixOptions read_mixing(const JsonView& root) {
  if (!root.has("mixing")) return {};
  const JsonView view = root.at("mixing");
  const auto alpha = [&](const char* name) { return read_setting(view.at(name), kMixAlphaRange); };
  return {.mixup = alpha("mixup"), .cutmix = alpha("cutmix")};
}

json to_json(const KeptPlanning& planning) {
  return {{"budget", planning.budget},
          {"memory", planning.memory},
          {"planner", planning.planner},
          {"recompute", planning.may_recompute},
          {"state", planning.state},
          {"update", planning.update},
          {"far_folder", planning.far_folder},
          {"device", planning.device},
          {"mode", planning.mode},
          {"budget_bytes", planning.budget_bytes.count()}};
}

std::optional<KeptPlanning> read_planning(const JsonView& root) {
  if (!root.has("planning")) return std::nullopt;
  const JsonView view = root.at("planning");
  const auto text = [&](const char* name) { return view.at(name).string(); };
  const auto one_of = [&](const char* name, std::initializer_list<std::string_view> words) {
    if (std::ranges::count(words, text(name)) == 0) {
      throw view.at(name).error(fmt::format("is '{}', not {}", text(name), fmt::join(words, ", ")));
    }
    return text(name);
  };
  return KeptPlanning{.budget = text("budget"),
                      .memory = one_of("memory", {"auto", "managed", "copy", "resident"}),
                      .planner = text("planner"),
                      .may_recompute = view.at("recompute").boolean(),
                      .state = one_of("state", {"auto", "near", "far"}),
                      .update = one_of("update", {"auto", "near", "far"}),
                      .far_folder = view.has("far_folder") ? text("far_folder") : "",
                      .device = text("device"),
                      .mode = one_of("mode", {"managed", "copy", "resident"}),
                      .budget_bytes = um::Bytes{view.at("budget_bytes").integer()}};
}

json to_json(const KeptSettings& settings) {
  json object{{"learning_rate", to_json(settings.learning_rate)},
              {"optimizer", to_json(settings.optimizer)},
              {"threads", settings.threads},
              {"precision", to_string(settings.precision)},
              {"deterministic", settings.deterministic}};
  if (settings.label_smoothing > 0) {
    object["label_smoothing"] = um::shortest_decimal(settings.label_smoothing);
  }
  if (settings.mixing.is_on()) object["mixing"] = to_json(settings.mixing);
  if (settings.average_decay > 0) object["average_decay"] = settings.average_decay;
  if (!settings.frozen.empty()) object["frozen"] = settings.frozen;
  if (settings.micro_batch_size) object["micro_batch_size"] = *settings.micro_batch_size;
  if (settings.dropout) object["dropout"] = um::shortest_decimal(*settings.dropout);
  if (settings.images) object["images"] = to_json(*settings.images);
  if (settings.evaluations != EvaluationRule{}) {
    object["evaluations"] = to_json(settings.evaluations);
  }
  if (settings.train_samples > 0) object["train_samples"] = settings.train_samples;
  if (settings.planning) object["planning"] = to_json(*settings.planning);
  return object;
}

}  // namespace spillway
