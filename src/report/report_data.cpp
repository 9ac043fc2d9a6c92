#include "src/report/report_data.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/bench/bench_file.h"
#include "src/report/comparison.h"
#include "src/report/training_curves.h"
#include "src/report/verdict.h"

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

}  // namespace spillway
