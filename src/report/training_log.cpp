#include "src/report/training_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prefetch/files/json.h"
#include "um/text/json_limits.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

using nlohmann::json;
using prefetch::JsonView;

// A number, or null for what is none: JSON has no infinity.
double figure(const JsonView& object, const char* name) {
  if (!object.has(name) || object.at(name).is_null()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return object.at(name).number();
}

// What ran again from step number `step` on.
template <class Entry>
void drop_from(std::uint64_t step, std::vector<Entry>& entries) {
  while (!entries.empty() && entries.back().step >= step) entries.pop_back();
}

template <class Entry, std::size_t kCount>
void add(const JsonView& object, const std::array<const char*, kCount>& names,
         std::vector<Entry>& entries) {
  Entry entry{.step = object.at("step").integer(), .epoch = object.at("epoch").integer()};
  std::ranges::transform(names, entry.figures.begin(),
                         [&](const char* name) { return figure(object, name); });
  drop_from(entry.step, entries);
  entries.push_back(entry);
}

TrainedSubject subject_of(const JsonView& summary) {
  const auto text = [&](const char* name) {
    return summary.has(name) ? summary.at(name).string() : std::string{};
  };
  const auto number = [&](const char* name) {
    return summary.has(name) ? summary.at(name).integer() : 0;
  };
  return {.network = text("network"),
          .data = text("data"),
          .batch = number("batch"),
          .budget_bytes = number("budget_bytes"),
          .resident_bytes = number("resident_bytes")};
}

// One object a line.
void add_line(const JsonView& line, TrainingLog& log) {
  if (line.has("step")) {
    add(line, kStepFigures, log.steps);
    drop_from(log.steps.back().step, log.evaluations);
    log.subject.reset();
    log.best_step.reset();
  } else if (line.has("evaluation")) {
    add(line.at("evaluation"), kEvaluationFigures, log.evaluations);
  } else if (line.has("early_stop")) {
    log.best_step = line.at("early_stop").at("best_step").integer();
  } else if (line.has("summary")) {
    log.subject = subject_of(line.at("summary"));
  } else {
    throw line.error("is neither a step nor an evaluation nor a summary");
  }
}

json parsed_or_null(std::string_view line) {
  const bool is_possible = line.size() <= kLongestLogLine && !um::beyond_json_limits(line);
  if (!is_possible) return nullptr;
  json parsed = json::parse(line, nullptr, /*allow_exceptions=*/false);
  return parsed.is_discarded() ? json{} : parsed;
}

// What a killed training left of its last line may have another file's first line behind it: that
// one, or all where there is none.
std::string whole_line(const std::string& line) {
  if (!parsed_or_null(line).is_null()) return line;
  for (std::size_t at = line.find("{\"", 1); at != std::string::npos;
       at = line.find("{\"", at + 1)) {
    std::string rest = line.substr(at);
    if (parsed_or_null(rest).is_object()) return rest;
  }
  return line;
}

template <std::size_t kCount>
constexpr std::size_t place_of(const std::array<const char*, kCount>& names,
                               std::string_view name) {
  std::size_t i = 0;
  while (names.at(i) != name) ++i;
  return i;
}

constexpr std::size_t kLoss = place_of(kStepFigures, "loss");
constexpr std::size_t kSeconds = place_of(kStepFigures, "seconds");
constexpr std::size_t kDataWait = place_of(kStepFigures, "data_wait_seconds");
constexpr std::size_t kNearPeak = place_of(kStepFigures, "near_peak_bytes");
constexpr std::size_t kMovedIn = place_of(kStepFigures, "bytes_prefetched");
constexpr std::size_t kMovedOut = place_of(kStepFigures, "bytes_offloaded");
constexpr std::size_t kFaults = place_of(kStepFigures, "faults");
constexpr std::size_t kTestLoss = place_of(kEvaluationFigures, "test_loss");
constexpr std::size_t kTestAccuracy = place_of(kEvaluationFigures, "test_accuracy");
constexpr std::size_t kPerplexity = place_of(kEvaluationFigures, "perplexity");

// Steps that become one point.
struct Neighbours {
  double sum = 0;
  double min = 0;
  double max = 0;
  std::size_t count = 0;

  void add(double number) {
    min = count == 0 ? number : std::min(min, number);
    max = count == 0 ? number : std::max(max, number);
    sum += number;
    ++count;
  }
};

// A figure of those of these steps that have it.
Neighbours told_of(std::span<const TrainingStep> steps, std::size_t figure) {
  Neighbours all;
  for (const TrainingStep& step : steps) {
    if (std::isfinite(step.figures.at(figure))) all.add(step.figures.at(figure));
  }
  return all;
}

json curve(const std::vector<TrainingStep>& steps, std::size_t figure) {
  json points = json::array();
  const std::size_t each = (steps.size() + kMostPoints - 1) / kMostPoints;
  for (std::size_t first = 0; first < steps.size(); first += each) {
    const std::size_t end = std::min(first + each, steps.size());
    const Neighbours of_point = told_of(std::span{steps}.subspan(first, end - first), figure);
    if (of_point.count == 0) continue;
    points.push_back({steps[end - 1].step, of_point.sum / static_cast<double>(of_point.count),
                      of_point.min, of_point.max});
  }
  return points;
}

json evaluation_json(const TrainingEvaluation& evaluation) {
  json entry{{"step", evaluation.step}, {"epoch", evaluation.epoch}};
  for (std::size_t i = 0; i < kEvaluationFigures.size(); ++i) {
    const double number = evaluation.figures.at(i);
    if (std::isfinite(number)) entry[kEvaluationFigures.at(i)] = number;
  }
  return entry;
}

// "lenet at batch 8 on synthetic images of 10 classes: 3 steps, loss 4.02 to 3.55."
std::string whole(const TrainingLog& log) {
  const TrainedSubject subject = log.subject.value_or(TrainedSubject{});
  std::string text = subject.network.empty() ? "A training" : subject.network;
  if (subject.batch > 0) text += fmt::format(" at batch {}", subject.batch);
  if (!subject.data.empty()) text += " on " + subject.data;
  text += ": " + um::count_of(log.steps.size(), "step");
  if (log.steps.empty()) return text + ".";
  const double first = log.steps.front().figures[kLoss];
  const double last = log.steps.back().figures[kLoss];
  if (!std::isfinite(last)) {
    return text + fmt::format("; the loss of step {} is not a number.", log.steps.back().step);
  }
  if (log.steps.size() == 1 || !std::isfinite(first)) {
    return text + fmt::format(", loss {:.4g}.", last);
  }
  return text + fmt::format(", loss {:.4g} to {:.4g}.", first, last);
}

// By accuracy, of texts by loss.
const TrainingEvaluation* best_evaluation(const TrainingLog& log) {
  const TrainingEvaluation* best = nullptr;
  for (const TrainingEvaluation& each : log.evaluations) {
    const bool is_of_text = std::isfinite(each.figures[kPerplexity]);
    const std::size_t figure = is_of_text ? kTestLoss : kTestAccuracy;
    const double now = each.figures.at(figure);
    if (!std::isfinite(now)) continue;
    const double so_far = best == nullptr ? now : best->figures.at(figure);
    if (best == nullptr || (is_of_text ? now < so_far : now > so_far)) best = &each;
  }
  return best;
}

std::string best_sentence(const TrainingEvaluation& best) {
  const double perplexity = best.figures[kPerplexity];
  const std::string by = std::isfinite(perplexity)
                             ? fmt::format("perplexity {:.2f}", perplexity)
                             : fmt::format("accuracy {:.2f} %", 100 * best.figures[kTestAccuracy]);
  return fmt::format("The best evaluation is that of step {}, epoch {}: loss {:.4f}, {}.",
                     best.step, best.epoch, best.figures[kTestLoss], by);
}

// Where the loader kept the step waiting.
std::optional<std::string> wait_sentence(const std::vector<TrainingStep>& steps) {
  double waited = 0;
  double ran = 0;
  for (const TrainingStep& step : steps) {
    if (!std::isfinite(step.figures[kDataWait]) || !std::isfinite(step.figures[kSeconds])) continue;
    waited += step.figures[kDataWait];
    ran += step.figures[kSeconds];
  }
  if (ran == 0) return std::nullopt;
  const double percent = 100 * waited / (waited + ran);
  const std::string part = percent < 0.1 ? "less than 0.1" : fmt::format("{:.3g}", percent);
  return fmt::format("Steps waited for their data {} % of the time.", part);
}

std::string bytes_text(double bytes) {
  return um::to_string(um::Bytes{static_cast<std::uint64_t>(std::max(bytes, 0.0))});
}

// "Near memory was at most 2.30 MiB of a budget of 2.32 MiB (3.06 MiB with all near); a step moved
// 784 KiB in and 784 KiB out on average, without page faults."
std::optional<std::string> memory_sentence(const TrainingLog& log) {
  const Neighbours near = told_of(log.steps, kNearPeak);
  if (near.count == 0) return std::nullopt;
  std::string text = "Near memory was at most " + bytes_text(near.max);
  const TrainedSubject subject = log.subject.value_or(TrainedSubject{});
  // Steps before a resume may have had a larger budget.
  if (subject.budget_bytes > 0 && near.max <= static_cast<double>(subject.budget_bytes)) {
    text += " of a budget of " + um::to_string(um::Bytes{subject.budget_bytes});
  }
  if (subject.resident_bytes > 0) {
    text += " (" + um::to_string(um::Bytes{subject.resident_bytes}) + " with all near)";
  }
  const Neighbours in = told_of(log.steps, kMovedIn);
  const Neighbours out = told_of(log.steps, kMovedOut);
  if (in.count > 0 && out.count > 0) {
    text += fmt::format("; a step moved {} in and {} out on average",
                        bytes_text(in.sum / static_cast<double>(in.count)),
                        bytes_text(out.sum / static_cast<double>(out.count)));
    const Neighbours faults = told_of(log.steps, kFaults);
    if (faults.count > 0 && faults.max == 0) text += ", without page faults";
    if (faults.max > 0) text += fmt::format(", page faults in all: {:.0f}", faults.sum);
  }
  return text + ".";
}

std::vector<std::string> sentences(const TrainingLog& log) {
  std::vector<std::string> said{whole(log)};
  if (const TrainingEvaluation* const best = best_evaluation(log)) {
    said.push_back(best_sentence(*best));
  }
  if (log.best_step) {
    said.push_back(fmt::format(
        "It ended early: no later evaluation was better than that of step {}.", *log.best_step));
  }
  if (auto memory = memory_sentence(log)) said.push_back(*std::move(memory));
  if (auto waiting = wait_sentence(log.steps)) said.push_back(*std::move(waiting));
  if (!log.subject) {
    said.emplace_back(
        "The file has no summary: the training was still running, or was ended before its last "
        "step.");
  }
  return said;
}

}  // namespace

bool is_training_log(std::string_view text) {
  const json first = parsed_or_null(text.substr(0, text.find('\n')));
  if (!first.is_object()) return false;
  const auto holds_object = [&](const char* name) {
    return first.contains(name) && first.at(name).is_object();
  };
  return (first.contains("step") && first.contains("loss")) || holds_object("evaluation") ||
         holds_object("summary");
}

TrainingLog read_training_log(const std::string& text, const std::string& name) {
  TrainingLog log;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const bool is_cut = end == std::string::npos;
    const std::string line = text.substr(begin, is_cut ? end : end - begin);
    begin = is_cut ? text.size() : end + 1;
    ++number;
    if (is_cut && parsed_or_null(line).is_null()) break;
    const prefetch::JsonFile parsed{whole_line(line), name + ": line " + std::to_string(number)};
    add_line(parsed.root(), log);
  }
  return log;
}

json training_data(const TrainingLog& log) {
  json data{{"steps", log.steps.size()}, {"first_step", nullptr},
            {"last_step", nullptr},      {"said", sentences(log)},
            {"curves", json::object()},  {"evaluations", json::array()}};
  if (!log.steps.empty()) {
    data["first_step"] = log.steps.front().step;
    data["last_step"] = log.steps.back().step;
  }
  for (std::size_t i = 0; i < kStepFigures.size(); ++i) {
    json points = curve(log.steps, i);
    if (!points.empty()) data["curves"][kStepFigures.at(i)] = std::move(points);
  }
  for (const TrainingEvaluation& evaluation : log.evaluations) {
    data["evaluations"].push_back(evaluation_json(evaluation));
  }
  return data;
}

}  // namespace spillway
