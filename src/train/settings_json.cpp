#include "src/train/settings_json.h"

#include <array>
#include <variant>

#include "um/text/shortest_decimal.h"

namespace spillway {
namespace {

using nlohmann::json;
using prefetch::JsonView;

constexpr std::array kSchedules{Schedule::kConstant, Schedule::kStep, Schedule::kMultiStep,
                                Schedule::kCosine};

float real(const JsonView& view, const char* key) {
  return static_cast<float>(view.at(key).number());
}

double beta(const JsonView& view, const char* key) {
  const double value = view.at(key).number();
  if (value >= 1) throw view.at(key).error("is not below 1");
  return value;
}

json to_json(const SgdOptions& sgd) {
  return {{"momentum", um::shortest_decimal(sgd.momentum)},
          {"weight_decay", um::shortest_decimal(sgd.weight_decay)},
          {"nesterov", sgd.nesterov}};
}

json to_json(const AdamOptions& adam) {
  return {{"beta1", adam.beta1},
          {"beta2", adam.beta2},
          {"epsilon", um::shortest_decimal(adam.epsilon)},
          {"weight_decay", um::shortest_decimal(adam.weight_decay)}};
}

json to_json(const RmspropOptions& rmsprop) {
  return {{"alpha", rmsprop.alpha},
          {"epsilon", um::shortest_decimal(rmsprop.epsilon)},
          {"momentum", um::shortest_decimal(rmsprop.momentum)},
          {"weight_decay", um::shortest_decimal(rmsprop.weight_decay)}};
}

std::vector<std::uint64_t> read_milestones(const JsonView& view) {
  const JsonView list = view.at("milestones");
  std::vector<std::uint64_t> milestones;
  for (std::size_t i = 0; i < list.size(); ++i) milestones.push_back(list.at(i).integer());
  return milestones;
}

}  // namespace

std::string name_of(const OptimizerOptions& optimizer) {
  if (std::holds_alternative<RmspropOptions>(optimizer)) return "rmsprop";
  const auto* const adam = std::get_if<AdamOptions>(&optimizer);
  if (adam == nullptr) return "sgd";
  return adam->decoupled ? "adamw" : "adam";
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
  json result = std::visit([](const auto& options) { return to_json(options); }, optimizer);
  result["name"] = name_of(optimizer);
  result["clip_norm"] =
      std::visit([](const auto& own) { return um::shortest_decimal(own.clip_norm); }, optimizer);
  if (std::visit([](const auto& own) { return own.decays_all; }, optimizer)) {
    result["decays_all"] = true;
  }
  return result;
}

OptimizerOptions read_optimizer(const JsonView& view) {
  const std::string name = view.at("name").string();
  // Checkpoints of before know nothing of it.
  const float clip_norm = view.has("clip_norm") ? real(view, "clip_norm") : 0.F;
  const bool decays_all = view.has("decays_all") && view.at("decays_all").boolean();
  if (name == "sgd") {
    return SgdOptions{.momentum = real(view, "momentum"),
                      .weight_decay = real(view, "weight_decay"),
                      .nesterov = view.at("nesterov").boolean(),
                      .clip_norm = clip_norm,
                      .decays_all = decays_all};
  }
  if (name == "rmsprop") {
    return RmspropOptions{.alpha = beta(view, "alpha"),
                          .epsilon = static_cast<float>(view.at("epsilon").positive_number()),
                          .momentum = real(view, "momentum"),
                          .weight_decay = real(view, "weight_decay"),
                          .clip_norm = clip_norm,
                          .decays_all = decays_all};
  }
  if (name != "adam" && name != "adamw") {
    throw view.at("name").error("is '" + name + "', not sgd, adam, adamw or rmsprop");
  }
  return AdamOptions{.beta1 = beta(view, "beta1"),
                     .beta2 = beta(view, "beta2"),
                     .epsilon = static_cast<float>(view.at("epsilon").positive_number()),
                     .weight_decay = real(view, "weight_decay"),
                     .decoupled = name == "adamw",
                     .clip_norm = clip_norm,
                     .decays_all = decays_all};
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
  LearningRateOptions options{.rate = real(view, "rate"),
                              .schedule = *schedule,
                              .warmup_steps = view.at("warmup_steps").integer(),
                              .step_every = view.at("step_every").integer(),
                              .step_factor = real(view, "step_factor"),
                              .final_rate = real(view, "final_rate"),
                              .cosine_steps = view.at("cosine_steps").integer()};
  if (options.schedule == Schedule::kMultiStep) options.milestones = read_milestones(view);
  if (options.schedule == Schedule::kStep && options.step_every == 0) {
    throw view.at("step_every").error("is zero");
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
    const auto value = real(view, name);
    if (value > 1) throw view.at(name).error("is above 1");
    return value;
  };
  const auto part_above_zero = [&](const char* name) {
    const float value = part(name);
    if (value == 0) throw view.at(name).error("is zero");
    return value;
  };
  // Checkpoints of before know nothing of it.
  const float hue = view.has("hue") ? real(view, "hue") : 0.F;
  if (hue > kMostHue) throw view.at("hue").error("is above 0.5");
  ImageOptions options{
      .augmentation = {.least_area = part("crop_area"),
                       .flip = part("flip"),
                       .color_jitter = part("color_jitter"),
                       .hue = hue,
                       .erase = part("erase")},
      .on_broken = view.at("skips_broken").boolean() ? OnBroken::kSkip : OnBroken::kStop};
  if (view.has("eval_crop")) options.eval_crop = part_above_zero("eval_crop");
  if (view.has("validation")) {
    static_cast<void>(part_above_zero("validation"));
    options.validation = view.at("validation").number();
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
  return BestEvaluation{.step = view.at("step").integer(),
                        .loss = view.at("loss").number(),
                        .accuracy = view.at("accuracy").number(),
                        .evaluations_since = view.at("evaluations_since").integer()};
}

json to_json(const MixOptions& mixing) {
  return {{"mixup", um::shortest_decimal(mixing.mixup)},
          {"cutmix", um::shortest_decimal(mixing.cutmix)}};
}

MixOptions read_mixing(const JsonView& root) {
  if (!root.has("mixing")) return {};
  const JsonView view = root.at("mixing");
  const auto alpha = [&](const char* name) {
    const float value = real(view, name);
    if (value > kMostMixAlpha) throw view.at(name).error("is above 1000");
    return value;
  };
  return {.mixup = alpha("mixup"), .cutmix = alpha("cutmix")};
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
  if (settings.sub_batch) object["sub_batch"] = *settings.sub_batch;
  if (settings.shards) object["shards"] = *settings.shards;
  if (settings.dropout) object["dropout"] = um::shortest_decimal(*settings.dropout);
  if (settings.images) object["images"] = to_json(*settings.images);
  if (settings.evaluations != EvaluationRule{}) {
    object["evaluations"] = to_json(settings.evaluations);
  }
  if (settings.train_samples > 0) object["train_samples"] = settings.train_samples;
  return object;
}

}  // namespace spillway
