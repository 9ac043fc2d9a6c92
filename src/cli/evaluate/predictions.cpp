#include "src/cli/evaluate/predictions.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace spillway::cli {

std::vector<ClassProbability> likeliest_classes(std::span<const float> logits, std::size_t count) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    // Those that are no number come last, or it would be no order.
    if (std::isnan(logits[a]) || std::isnan(logits[b])) return !std::isnan(logits[a]);
    return logits[a] > logits[b];
  });
  std::vector<ClassProbability> classes;
  if (order.empty()) return classes;
  const auto largest = static_cast<double>(logits[order.front()]);
  const double sum =
      std::accumulate(logits.begin(), logits.end(), 0.0, [&](double before, float logit) {
        return before + std::exp(static_cast<double>(logit) - largest);
      });
  order.resize(std::min(count, order.size()));
  for (const std::size_t number : order) {
    const auto logit = static_cast<double>(logits[number]);
    classes.push_back({.number = number, .probability = std::exp(logit - largest) / sum});
  }
  return classes;
}

Prediction::Prediction(const JudgedImage& image, const PredictionOptions& options)
    : options_{options},
      classes_{likeliest_classes(image.logits, options.top)},
      logits_{image.logits.begin(), image.logits.end()} {
  if (!classes_.empty()) return;
  classes_.push_back({.number = static_cast<std::size_t>(image.judged.prediction),
                      .probability = static_cast<double>(image.judged.probability)});
}

// Its number, and its name where it has one.
std::string Prediction::name_of(std::size_t number) const {
  const std::vector<std::string>& names = options_.class_names;
  return number < names.size() ? fmt::format("{} ({})", number, names[number])
                               : std::to_string(number);
}

std::string Prediction::text() const {
  std::string text;
  for (const ClassProbability& each : classes_) {
    text += text.empty() ? fmt::format("class {}, probability", name_of(each.number))
                         : fmt::format("; {}", name_of(each.number));
    text += fmt::format(" {:.3f}", each.probability);
  }
  return text;
}

nlohmann::json Prediction::json_of(const ClassProbability& each) const {
  nlohmann::json object{{"class", each.number}, {"probability", each.probability}};
  const std::vector<std::string>& names = options_.class_names;
  if (each.number < names.size()) object["class_name"] = names[each.number];
  return object;
}

nlohmann::json Prediction::json() const {
  nlohmann::json object = json_of(classes_.front());
  if (options_.top > 1) {
    for (const ClassProbability& each : classes_) object["top"].push_back(json_of(each));
  }
  if (options_.has_logits) object["logits"] = logits_;
  return object;
}

}  // namespace spillway::cli
