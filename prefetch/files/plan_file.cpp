#include "prefetch/files/plan_file.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <unordered_map>

#include "um/error.h"

namespace spillway::prefetch {

std::string graph_stamp(std::uint64_t fingerprint) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(fingerprint));
  return text.data();
}

bool is_made_for(const TaskGraph& graph, const JsonView& file) {
  return file.has("graph") && file.at("graph").string() == graph_stamp(fingerprint(graph));
}

std::uint64_t expect_made_for(const TaskGraph& graph, const JsonView& file) {
  const std::uint64_t print = fingerprint(graph);
  const JsonView made_for = file.at("graph");
  if (made_for.string() == graph_stamp(print)) return print;
  throw made_for.error(
      "belongs to another step or machine (" + made_for.string() + ", here " + graph_stamp(print) +
      "): give the --net, --batch, --image-size, --classes, --aux-heads, --optimizer, --mixup, "
      "--cutmix, --micro-batches, --conv-algorithm, --state, --update and --threads, " +
      (graph.exchanges.empty() ? "" : "the --bucket and --zero of ranks, ") +
      "and the --device, --precision and --deterministic of a GPU, that it was made with, or make "
      "it again");
}

namespace {

using nlohmann::json;

json to_json(const Progress& after) { return {after.runs, after.offloads, after.prefetches}; }

json to_json(const std::vector<Move>& moves, const TaskGraph& graph) {
  json all = json::array();
  for (const Move& move : moves) {
    json entry{{"data", graph[move.data].name},
               {"offset_bytes", move.offset.count()},
               {"size_bytes", move.size.count()},
               {"after", to_json(move.after)}};
    if (move.is_clean) entry["clean"] = true;
    if (move.free_after > 0) entry["free_after"] = move.free_after;
    all.push_back(std::move(entry));
  }
  return all;
}

// Maps names to ids.
template <class Id, class Named>
class Names {
 public:
  explicit Names(const std::vector<Named>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      um::expects(ids_.emplace(all[i].name, Id(i)).second, "names in a graph are unique");
    }
  }
  [[nodiscard]] Id find(const JsonView& name) const {
    const auto found = ids_.find(name.string());
    if (found == ids_.end())
      throw name.error("is '" + name.string() + "', which the network does not have");
    return found->second;
  }

 private:
  std::unordered_map<std::string, Id> ids_;
};

std::uint32_t read_count(const JsonView& count) {
  return static_cast<std::uint32_t>(count.integer(UINT32_MAX));
}

Progress read_progress(const JsonView& after) {
  if (after.size() != 3) throw after.error("has not three elements");
  return {.runs = read_count(after.at(0)),
          .offloads = read_count(after.at(1)),
          .prefetches = read_count(after.at(2))};
}

std::vector<TaskRun> read_runs(const JsonView& entries, const TaskGraph& graph) {
  const Names<TaskId, Task> tasks{graph.tasks};
  std::vector<TaskRun> runs;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const JsonView entry = entries.at(i);
    TaskRun run{.task = tasks.find(entry.at("task"))};
    const Task& task = graph[run.task];
    const JsonView name = entry.at("algorithm");
    const auto found = std::ranges::find(task.algorithms, name.string(), &Algorithm::name);
    if (found == task.algorithms.end()) {
      throw name.error("is '" + name.string() + "', which " + task.name + " does not have here");
    }
    run.algorithm = static_cast<std::uint32_t>(found - task.algorithms.begin());
    run.is_recomputation = entry.has("recomputation") && entry.at("recomputation").boolean();
    run.after = read_progress(entry.at("after"));
    const bool waits = entry.has("after_exchanges");
    run.after_exchanges = waits ? read_count(entry.at("after_exchanges")) : 0;
    runs.push_back(run);
  }
  return runs;
}

std::vector<Move> read_moves(const JsonView& entries, const Names<DataId, DataBlock>& blocks) {
  std::vector<Move> moves;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const JsonView entry = entries.at(i);
    const bool is_read_on = entry.has("free_after");
    moves.push_back({.data = blocks.find(entry.at("data")),
                     .offset = um::Bytes{entry.at("offset_bytes").integer()},
                     .size = um::Bytes{entry.at("size_bytes").integer()},
                     .is_clean = entry.has("clean") && entry.at("clean").boolean(),
                     .after = read_progress(entry.at("after")),
                     .free_after = is_read_on ? read_count(entry.at("free_after")) : 0});
  }
  return moves;
}

json to_json(const std::vector<FarRun>& far_runs, const TaskGraph& graph) {
  json all = json::array();
  for (const FarRun& run : far_runs) {
    all.push_back({{"update", graph.far_updates[run.update].name}, {"after", to_json(run.after)}});
  }
  return all;
}

std::vector<FarRun> read_far_runs(const JsonView& entries, const TaskGraph& graph) {
  const Names<std::uint32_t, FarUpdate> updates{graph.far_updates};
  std::vector<FarRun> far_runs;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    far_runs.push_back({.update = updates.find(entries.at(i).at("update")),
                        .after = read_progress(entries.at(i).at("after"))});
  }
  return far_runs;
}

json to_json(const std::vector<ExchangeRun>& exchanges, const TaskGraph& graph) {
  json all = json::array();
  for (const ExchangeRun& run : exchanges) {
    all.push_back(
        {{"exchange", graph.exchanges[run.exchange].name}, {"after_runs", run.after_runs}});
  }
  return all;
}

std::vector<ExchangeRun> read_exchanges(const JsonView& entries, const TaskGraph& graph) {
  const Names<std::uint32_t, GradientExchange> names{graph.exchanges};
  std::vector<ExchangeRun> exchanges;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const JsonView entry = entries.at(i);
    exchanges.push_back({.exchange = names.find(entry.at("exchange")),
                         .after_runs = read_count(entry.at("after_runs"))});
  }
  return exchanges;
}

// Precedes the comparison of fingerprints, which would not name the reason.
void expect_as_many_ranks(const JsonView& plan, const TaskGraph& graph) {
  if (!plan.has("exchanges") || !graph.exchanges.empty()) return;
  throw plan.at("exchanges")
      .error(
          "are of gradients between several ranks, and this training has one: make the plan "
          "without --ranks");
}

Residency read_residency(const JsonView& name) {
  if (name.string() == "planned") return Residency::kPlanned;
  if (name.string() == "on-demand") return Residency::kOnDemand;
  throw name.error("is neither 'planned' nor 'on-demand'");
}

}  // namespace

json to_json(const Plan& plan, const TaskGraph& graph) {
  json runs = json::array();
  for (const TaskRun& run : plan.runs) {
    const Task& task = graph[run.task];
    json entry{{"task", task.name},
               {"algorithm", task.algorithms[run.algorithm].name},
               {"after", to_json(run.after)}};
    if (run.is_recomputation) entry["recomputation"] = true;
    if (run.after_exchanges > 0) entry["after_exchanges"] = run.after_exchanges;
    runs.push_back(std::move(entry));
  }
  json result{{"format", "spillway-plan"},
              {"version", 1},
              {"planner", plan.planner},
              {"graph", graph_stamp(plan.graph)},
              {"budget_bytes", plan.budget.count()},
              {"page_bytes", plan.page.count()},
              {"residency", plan.residency == Residency::kOnDemand ? "on-demand" : "planned"},
              {"runs", std::move(runs)},
              {"offloads", to_json(plan.offloads, graph)},
              {"prefetches", to_json(plan.prefetches, graph)}};
  if (json variants = variants_json(graph); !variants.empty()) {
    result["variants"] = std::move(variants);
  }
  if (!plan.far_runs.empty()) result["far_updates"] = to_json(plan.far_runs, graph);
  if (!plan.exchanges.empty()) result["exchanges"] = to_json(plan.exchanges, graph);
  return result;
}

json variants_json(const TaskGraph& graph) {
  json variants = json::object();
  for (const Task& task : graph.tasks) {
    if (!task.variant.empty()) variants[task.name] = task.variant;
  }
  return variants;
}

std::vector<std::pair<std::string, std::string>> read_variants(const JsonView& plan) {
  std::vector<std::pair<std::string, std::string>> result;
  if (!plan.has("variants")) return result;
  const JsonView variants = plan.at("variants");
  for (const std::string& task : variants.keys()) {
    result.emplace_back(task, variants.at(task).string());
  }
  return result;
}

Plan read_plan(const JsonFile& file, const TaskGraph& graph) {
  file.expect_format("spillway-plan", 1);
  const JsonView root = file.root();
  expect_as_many_ranks(root, graph);
  const std::uint64_t print = expect_made_for(graph, root);
  const Names<DataId, DataBlock> blocks{graph.data};
  return {.planner = root.at("planner").string(),
          .graph = print,
          .budget = um::Bytes{root.at("budget_bytes").integer()},
          .page = um::Bytes{root.at("page_bytes").integer()},
          .residency = read_residency(root.at("residency")),
          .runs = read_runs(root.at("runs"), graph),
          .offloads = read_moves(root.at("offloads"), blocks),
          .prefetches = read_moves(root.at("prefetches"), blocks),
          .far_runs = root.has("far_updates") ? read_far_runs(root.at("far_updates"), graph)
                                              : std::vector<FarRun>{},
          .exchanges = root.has("exchanges") ? read_exchanges(root.at("exchanges"), graph)
                                             : std::vector<ExchangeRun>{}};
}

}  // namespace spillway::prefetch
