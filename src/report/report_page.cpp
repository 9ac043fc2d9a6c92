#include "src/report/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/bench/bench_file.h"
#include "src/report/assets.h"
#include "src/report/comparison.h"
#include "src/report/training_log.h"
#include "src/report/verdict.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

using nlohmann::json;

json to_json(const Comparison& comparison) {
  json lines = json::array();
  for (const ComparisonLine& line : comparison.lines) {
    json rows = json::array();
    for (const auto& row : line.rows) rows.push_back(row ? json(*row) : json(nullptr));
    lines.push_back({{"series", to_string(line.key.series)},
                     {"net", line.key.net},
                     {"image_size", line.key.image_size},
                     {"batch", line.key.batch},
                     {"budget", line.key.budget},
                     {"budget_bytes", line.key.budget_bytes.count()},
                     {"rows", std::move(rows)},
                     {"fastest", line.fastest}});
  }
  return {{"columns", comparison.columns}, {"lines", std::move(lines)}};
}

json bench_data(const ReportInput& input) {
  const json& content = input.content;
  const json& machine = content.at("machine");
  json bench{{"file", input.name},
             {"load", machine.value("load_at_start", json())},
             {"paging", machine.value("paging", json())},
             {"verdict", verdict({content, input.name + ":"})},
             {"comparison", nullptr},
             {"runs", nullptr}};
  for (const char* key : {"bench", "date", "seconds", "build", "options", "rows"}) {
    bench[key] = content.at(key);
  }
  if (bench.at("bench") == "train" || bench.at("bench") == "planners") {
    const std::vector<TrainRow> rows = read_rows({content, input.name + ":"}, read_train_row);
    const Comparison comparison = compare(rows);
    bench["comparison"] = to_json(comparison);
    bench["runs"] = distinct_runs(rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      bench["rows"][i]["label"] = strategy_label(rows[i]);
      bench["rows"][i]["is_comparable"] = bool{comparison.settled[i]};
    }
  }
  return bench;
}

// What two files must have in common to be compared.
bool is_same(const json& machine, const json& other) {
  return machine.at("id") == other.at("id") && machine.at("device") == other.at("device");
}

void add_bench(const ReportInput& input, json& machines) {
  const json& machine = input.content.at("machine");
  auto found = std::ranges::find_if(
      machines, [&](const json& entry) { return is_same(entry.at("machine"), machine); });
  if (found == machines.end()) {
    machines.push_back({{"machine", machine}, {"benches", json::array()}});
    found = std::prev(machines.end());
  }
  found->at("benches").push_back(bench_data(input));
}

std::uint64_t bytes_of(const json& moves) {
  std::uint64_t bytes = 0;
  for (const json& move : moves) {
    if (!move.value("clean", false)) bytes += move.value("size_bytes", std::uint64_t{0});
  }
  return bytes;
}

json plan_data(const ReportInput& input) {
  const json& plan = input.content;
  const json none = json::array();
  const auto list = [&](const char* key) { return plan.value(key, none); };
  const json runs = list("runs");
  const auto again = std::ranges::count_if(
      runs, [](const json& run) { return run.value("recomputation", false); });
  return {{"file", input.name},
          {"planner", plan.value("planner", "")},
          {"residency", plan.value("residency", "")},
          {"budget_bytes", plan.value("budget_bytes", std::uint64_t{0})},
          {"runs", runs.size()},
          {"run_again", again},
          {"offload_bytes", bytes_of(list("offloads"))},
          {"prefetch_bytes", bytes_of(list("prefetches"))}};
}

void append(std::span<const double> figures, std::string& line) {
  for (const double figure : figures) {
    line += ',';
    if (std::isfinite(figure)) line += fmt::format("{}", figure);
  }
}

void append_rows(const ReportInput& input, std::string& table) {
  const std::string name = um::csv_field(input.name);
  auto evaluation = input.training.evaluations.begin();
  const auto end = input.training.evaluations.end();
  for (const TrainingStep& step : input.training.steps) {
    while (evaluation != end && evaluation->step < step.step) ++evaluation;
    table += fmt::format("{},{},{}", name, step.step, step.epoch);
    append(step.figures, table);
    if (evaluation != end && evaluation->step == step.step) {
      append(evaluation->figures, table);
    } else {
      table.append(kEvaluationFigures.size(), ',');
    }
    table += '\n';
  }
}

}  // namespace

json report_data(const ReportInputs& inputs, const std::string& version) {
  json data{{"version", version},         {"machines", json::array()},
            {"timelines", json::array()}, {"trainings", json::array()},
            {"plans", json::array()},     {"left_out", inputs.left_out}};
  for (const ReportInput& input : inputs.files) {
    if (input.kind == ReportInputKind::kBench) {
      add_bench(input, data["machines"]);
    } else if (input.kind == ReportInputKind::kTimeline) {
      json timeline = input.content;
      timeline["file"] = input.name;
      data["timelines"].push_back(std::move(timeline));
    } else if (input.kind == ReportInputKind::kTraining) {
      json training = training_data(input.training);
      training["file"] = input.name;
      data["trainings"].push_back(std::move(training));
    } else {
      data["plans"].push_back(plan_data(input));
    }
  }
  return data;
}

std::string step_table(const ReportInputs& inputs) {
  std::string table = fmt::format("training,step,epoch,{},{}\n", fmt::join(kStepFigures, ","),
                                  fmt::join(kEvaluationFigures, ","));
  bool has_training = false;
  for (const ReportInput& input : inputs.files) {
    if (input.kind != ReportInputKind::kTraining) continue;
    has_training = true;
    append_rows(input, table);
  }
  if (!has_training) {
    throw um::Error{
        "the steps of a training are what 'spillway train --json FILE' writes, and none of these "
        "files is one"};
  }
  return table;
}

std::string script_json(const nlohmann::json& data) {
  constexpr int kOnOneLine = -1;
  constexpr bool kAscii = true;
  const std::string text =
      data.dump(kOnOneLine, ' ', kAscii, nlohmann::json::error_handler_t::replace);
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {  // of </script and <!--; outside strings JSON has none
      escaped += "\\u003c";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string make_page(const nlohmann::json& data) {
  using namespace report_assets;
  const std::string json = script_json(data);
  const std::map<std::string_view, std::string_view> parts{
      {"style", kStyle}, {"license", kLicense}, {"d3", kD3}, {"script", kScript}, {"data", json}};
  std::string page;
  std::string_view rest = kTemplate;
  for (std::size_t at = rest.find("{{"); at != std::string_view::npos; at = rest.find("{{")) {
    page += rest.substr(0, at);
    const std::size_t end = rest.find("}}", at);
    um::expects(end != std::string_view::npos, "each {{ in the template has its }}");
    page += parts.at(rest.substr(at + 2, end - at - 2));
    rest.remove_prefix(end + 2);
  }
  page += rest;
  return page;
}

}  // namespace spillway
