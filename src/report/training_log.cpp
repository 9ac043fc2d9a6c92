#include "src/report/training_log.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "prefetch/files/json.h"
#include "um/text/json_limits.h"

namespace spillway {
namespace {

using nlohmann::json;
using prefetch::JsonView;

constexpr std::size_t kLongestLine = 1U << 20U;

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
  return {.network = text("network"),
          .data = text("data"),
          .batch = summary.has("batch") ? summary.at("batch").integer() : 0};
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
  const bool is_possible = line.size() <= kLongestLine && !um::beyond_json_limits(line);
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

}  // namespace spillway
