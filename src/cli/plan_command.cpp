#include "src/cli/plan_command.h"

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>

#include "prefetch/chrome_trace.h"
#include "prefetch/json.h"
#include "prefetch/machine.h"
#include "prefetch/plan_file.h"
#include "prefetch/profile_file.h"
#include "prefetch/simulate.h"
#include "prefetch/verify.h"
#include "src/budget.h"
#include "src/cli/json_lines.h"
#include "src/cli/memory_options.h"
#include "src/cli/plan_facts.h"
#include "src/cli/plan_options.h"
#include "src/cli/workload_options.h"
#include "src/host/host_backend.h"
#include "src/model_sizing.h"

namespace spillway::cli {
namespace {

using nlohmann::json;
using um::Bytes;

struct Options {
  WorkloadOptions workload;
  MemoryOptions memory;
  PlanOptions plan;
  std::string machine;
  std::string profile;
  std::string out;
  std::string timeline;
  std::string json;
};

double seconds(um::Nanoseconds time) { return static_cast<double>(time.count()) * 1e-9; }

// Tensor sizes and times: of this machine, or of one that is not here.
struct Target {
  std::unique_ptr<Sizing> sizing;
  std::optional<prefetch::Machine> machine;  // else a profile file
};

Target find_target(const Options& options) {
  Target target;
  if (options.profile.empty()) {
    target.machine = prefetch::find_machine(options.machine.empty() ? "host" : options.machine);
  }
  const bool is_here = !target.machine || target.machine->name == "host";
  if (is_here) {
    target.sizing = std::make_unique<host::HostBackend>();
  } else {
    target.sizing = std::make_unique<ModelSizing>();
  }
  return target;
}

prefetch::Profile make_profile(const Options& options, const Target& target,
                               const prefetch::TaskGraph& graph) {
  if (target.machine) return prefetch::model_profile(graph, *target.machine);
  return prefetch::read_profile(prefetch::JsonFile{options.profile}, graph);
}

// Bounds that are proved for this plan's problem come with the planners of the papers; until then
// the members are null.
json unknown_bounds() { return {{"beaumont", nullptr}, {"offload", nullptr}, {"mixed", nullptr}}; }

void write_infeasible(const Options& options, const Workload& workload, Bytes budget) {
  if (options.json.empty()) return;
  prefetch::write_json({{"feasible", false},
                        {"planner", options.plan.planner},
                        {"budget_bytes", budget.count()},
                        {"min_budget_bytes", workload.need().smallest.count()},
                        {"resident_bytes", workload.need().resident.count()}},
                       options.json);
}

void plan(const Options& options) {
  const Budget budget_text = Budget::parse(options.plan.budget);
  const PlanRequest request = options.plan.request(options.memory.mode());
  for (const std::string& path : {options.out, options.timeline, options.json}) {
    expect_writable(path);
  }
  const Target target = find_target(options);
  const nets::Network network = options.workload.network();
  const Workload workload{network, *target.sizing, options.workload.step()};
  const prefetch::TaskGraph& graph = workload.training().graph;
  const prefetch::Profile profile = make_profile(options, target, graph);
  const Bytes available = target.machine ? target.machine->near_memory : workload.need().resident;
  const Bytes budget = budget_text.resolve(workload.need(), available);
  if (budget < workload.need().smallest) write_infeasible(options, workload, budget);

  const auto begin = std::chrono::steady_clock::now();
  const prefetch::Plan plan = plan_training(workload, profile, budget, request);
  const um::Nanoseconds planning = std::chrono::steady_clock::now() - begin;
  const auto verdict = prefetch::verify(graph, plan);
  um::expects(std::holds_alternative<prefetch::Verified>(verdict), "planners return sound plans");
  const Bytes peak = std::get<prefetch::Verified>(verdict).peak;
  const prefetch::Timeline timeline = prefetch::simulate(plan, profile);
  const PlanFacts facts = facts_of(plan, graph);

  if (!options.out.empty()) prefetch::write_json(prefetch::to_json(plan, graph), options.out);
  if (!options.timeline.empty()) {
    prefetch::write_json(
        prefetch::to_chrome_trace(graph, plan, {{.name = "predicted", .timeline = timeline}}),
        options.timeline);
  }
  const um::Nanoseconds compute = prefetch::compute_time(profile, plan.runs);
  const json result{{"feasible", true},
                    {"network", network.name},
                    {"batch", options.workload.batch},
                    {"planner", plan.planner},
                    {"memory", to_string(request.memory)},
                    {"profile", profile.source},
                    {"budget_bytes", budget.count()},
                    {"min_budget_bytes", workload.need().smallest.count()},
                    {"resident_bytes", workload.need().resident.count()},
                    {"peak_bytes", peak.count()},
                    {"compute_seconds", seconds(compute)},
                    {"makespan_seconds", seconds(timeline.makespan())},
                    {"bounds", unknown_bounds()},
                    {"planning_seconds", seconds(planning)},
                    {"offloaded_bytes", facts.offloaded.count()},
                    {"prefetched_bytes", facts.prefetched.count()},
                    {"recomputed_tasks", facts.recomputed_tasks},
                    {"algorithms", facts.algorithms},
                    {"tasks", graph.tasks.size()},
                    {"verified", true}};
  if (!options.json.empty()) prefetch::write_json(result, options.json);
  if (options.json == "-" || options.out == "-" || options.timeline == "-") return;
  fmt::print("{} at batch {}, {}\n", network.name, options.workload.batch, profile.source);
  fmt::print("  budget           {} (smallest feasible {}, all near {})\n", um::to_string(budget),
             um::to_string(workload.need().smallest), um::to_string(workload.need().resident));
  fmt::print("  peak, verified   {}\n", um::to_string(peak));
  fmt::print("  step             {:.4f} s, of it arithmetic {:.4f} s\n",
             seconds(timeline.makespan()), seconds(compute));
  fmt::print("  moved            {} out, {} in, {} tasks run again\n",
             um::to_string(facts.offloaded), um::to_string(facts.prefetched),
             facts.recomputed_tasks);
  fmt::print("  planned in       {:.2f} s by {}\n", seconds(planning), plan.planner);
}

}  // namespace

void add_plan_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("plan", "Plan, verify and simulate a step; needs no device");
  const auto options = std::make_shared<Options>();  // shared: the callback keeps it
  options->workload.add_to(*command);
  options->memory.add_mode_to(*command);
  options->plan.add_to(*command);
  auto* const machine = command->add_option(
      "--machine", options->machine,
      "Machine to plan for: k40m, v100, a100, h100, h200, host, or a file (default: host)");
  command->add_option("--profile", options->profile, "Times measured by spillway profile")
      ->excludes(machine);
  command->add_option("--out", options->out, "Write the plan here, for spillway train --plan");
  command->add_option("--timeline", options->timeline,
                      "Write the predicted step here as a Chrome trace (opens in Perfetto)");
  command->add_option("--json", options->json, "Write the figures here as JSON, - for stdout");
  command->footer("Example: spillway plan --net vgg16 --batch 256 --machine v100 --budget 50%");
  command->callback([options] { plan(*options); });
}

}  // namespace spillway::cli
