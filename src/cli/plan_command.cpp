#include "src/cli/plan_command.h"

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "prefetch/chrome_trace.h"
#include "prefetch/json.h"
#include "prefetch/machine.h"
#include "prefetch/paleo.h"
#include "prefetch/plan_file.h"
#include "prefetch/profile_file.h"
#include "prefetch/simulate.h"
#include "prefetch/verify.h"
#include "src/budget.h"
#include "src/cli/machine_check.h"
#include "src/cli/memory_options.h"
#include "src/cli/output_path.h"
#include "src/cli/plan_options.h"
#include "src/cli/processor_options.h"
#include "src/cli/sub_batch_figures.h"
#include "src/cli/sub_batch_option.h"
#include "src/cli/workload_options.h"
#include "src/model_sizing.h"
#include "src/plan_facts.h"
#include "src/sub_batch_plans.h"
#include "src/sub_step.h"
#include "um/nanoseconds.h"

namespace spillway::cli {
namespace {

using nlohmann::json;
using um::Bytes;

struct Options {
  WorkloadOptions workload;
  ProcessorOptions processor;
  MemoryOptions memory;
  PlanOptions plan;
  SubBatchOption sub_batch;
  std::string machine;
  std::string profile;
  std::string out;
  std::string timeline;
  std::string json;
  std::string model = "simulate";
};

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
    target.sizing = options.processor.make_host_backend();
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

void write_infeasible(const Options& options, const Workload& workload, Bytes budget,
                      Bytes smallest) {
  if (options.json.empty()) return;
  prefetch::write_json({{"feasible", false},
                        {"planner", options.plan.planner},
                        {"budget_bytes", budget.count()},
                        {"min_budget_bytes", smallest.count()},
                        {"resident_bytes", workload.need().resident.count()}},
                       options.json);
}

// A plan and everything that is said about it.
struct Planned {
  prefetch::Plan plan;
  um::Nanoseconds planning{0};
  Bytes peak;
  prefetch::Timeline timeline;
  prefetch::Bounds bounds;
};

Planned make_plan(const Workload& workload, const prefetch::Profile& profile, Bytes budget,
                  const PlanRequest& request) {
  Planned planned;
  const auto begin = std::chrono::steady_clock::now();
  planned.plan = plan_training(workload, profile, budget, request);
  planned.planning = std::chrono::steady_clock::now() - begin;
  const auto verdict = prefetch::verify(workload.training().graph, planned.plan);
  um::expects(std::holds_alternative<prefetch::Verified>(verdict), "planners return sound plans");
  planned.peak = std::get<prefetch::Verified>(verdict).peak;
  planned.timeline = prefetch::simulate(planned.plan, profile);
  planned.bounds = training_bounds(workload, profile, budget, request);
  return planned;
}

json to_json(const Planned& planned, const Workload& workload, const prefetch::Profile& profile,
             Bytes budget) {
  const PlanFacts facts = facts_of(planned.plan, workload.training().graph);
  return {{"feasible", true},
          {"planner", planned.plan.planner},
          {"profile", profile.source},
          {"budget_bytes", budget.count()},
          {"min_budget_bytes", workload.need().smallest.count()},
          {"resident_bytes", workload.need().resident.count()},
          {"peak_bytes", planned.peak.count()},
          {"compute_seconds", um::seconds(prefetch::compute_time(profile, planned.plan.runs))},
          {"makespan_seconds", um::seconds(planned.timeline.makespan())},
          {"bounds",
           {{"beaumont", um::seconds(planned.bounds.beaumont)},
            {"offload", um::seconds(planned.bounds.offload)},
            {"mixed", um::seconds(planned.bounds.mixed)}}},
          {"planning_seconds", um::seconds(planned.planning)},
          {"offloaded_bytes", facts.offloaded.count()},
          {"prefetched_bytes", facts.prefetched.count()},
          {"recomputed_tasks", facts.recomputed_tasks},
          {"algorithms", facts.algorithms},
          {"tasks", workload.training().graph.tasks.size()},
          {"verified", true}};
}

// What OOC-Paleo says of the same step.
void add_paleo(const Planned& planned, const Workload& workload, const prefetch::Profile& profile,
               json& figures) {
  const auto strategy = prefetch::paleo_strategy(planned.plan.planner);
  const auto step =
      prefetch::paleo_step(workload.training().graph, profile, planned.plan, strategy);
  figures["paleo_seconds"] = um::seconds(step.makespan);
  figures["paleo_strategy"] = prefetch::to_string(strategy);
}

void print(const json& figures) {
  const auto bytes = [&](const char* key) {
    return um::to_string(Bytes{figures.at(key).get<std::uint64_t>()});
  };
  const auto number = [&](const char* key) { return figures.at(key).get<double>(); };
  fmt::print("  profile          {}\n", figures.at("profile").get<std::string>());
  fmt::print("  budget           {} (smallest feasible {}, all near {})\n", bytes("budget_bytes"),
             bytes("min_budget_bytes"), bytes("resident_bytes"));
  if (figures.at("sub_steps") > 1) {
    fmt::print("  sub-batches      {} of {} images\n", figures.at("sub_steps").get<std::size_t>(),
               figures.at("sub_batch").get<std::size_t>());
  }
  fmt::print("  peak, verified   {}\n", bytes("peak_bytes"));
  fmt::print("  step             {:.4f} s, of it arithmetic {:.4f} s\n", number("makespan_seconds"),
             number("compute_seconds"));
  if (figures.contains("paleo_seconds")) {
    fmt::print("  by OOC-Paleo     {:.4f} s ({})\n", number("paleo_seconds"),
               figures.at("paleo_strategy").get<std::string>());
  }
  fmt::print("  no plan below    {:.4f} s (moving alone {:.4f} s)\n",
             figures.at("bounds").at("mixed").get<double>(),
             figures.at("bounds").at("offload").get<double>());
  fmt::print("  moved            {} out, {} in, {} tasks run again\n", bytes("offloaded_bytes"),
             bytes("prefetched_bytes"), figures.at("recomputed_tasks").get<std::uint64_t>());
  fmt::print("  planned in       {:.2f} s by {}\n", number("planning_seconds"),
             figures.at("planner").get<std::string>());
}

void write(const Options& options, const Planned& planned, const prefetch::TaskGraph& graph) {
  if (!options.out.empty()) {
    prefetch::write_json(prefetch::to_json(planned.plan, graph), options.out);
  }
  if (options.timeline.empty()) return;
  prefetch::write_json(
      prefetch::to_chrome_trace(graph, planned.plan,
                                {{.name = "predicted", .timeline = planned.timeline}}),
      options.timeline);
}

void report(const Options& options, const prefetch::SubBatches& batches, json figures) {
  figures["sub_batch"] = batches.size;
  figures["sub_steps"] = batches.steps;
  figures["network"] = options.workload.net;
  figures["batch"] = options.workload.batch;
  figures["memory"] = options.memory.memory;
  if (!options.json.empty()) prefetch::write_json(figures, options.json);
  if (options.json == "-" || options.out == "-" || options.timeline == "-") return;
  fmt::print("{} at batch {}\n", options.workload.net, options.workload.batch);
  print(figures);
}

// False when the batch is not cut.
bool plan_in_sub_batches(const Options& options, const Target& target, const nets::Network& network,
                         const Workload& workload, Bytes budget) {
  if (!target.machine) {
    throw um::Error{
        "--sub-batch needs times at other batch sizes than a --profile's; give a "
        "--machine instead"};
  }
  const auto begin = std::chrono::steady_clock::now();
  SubBatchPlanner planner{{.network = network,
                           .sizing = *target.sizing,
                           .machine = *target.machine,
                           .step = options.workload.step(),
                           .budget = workload.training_budget(budget),
                           .request = options.plan.request(options.memory.mode())}};
  const prefetch::SubBatches batches = options.sub_batch.resolve(options.workload.batch, planner);
  if (batches.steps == 1) return false;
  if (options.model == "paleo") {
    throw um::Error{"--model paleo describes one step; leave --sub-batch away"};
  }
  const std::vector<PlannedSubStep> steps = planner.plan(batches);
  json figures = figures_of(steps, planner, std::chrono::steady_clock::now() - begin);
  figures["budget_bytes"] = budget.count();
  const PlannedSubStep& last = steps.back();
  if (normalizes_by_batch(*last.graph)) {
    fmt::print(stderr, "note: batch norm's statistics change: they are of each sub-batch alone\n");
  }
  write(options, {.plan = last.plan, .timeline = prefetch::simulate(last.plan, *last.profile)},
        *last.graph);
  report(options, batches, std::move(figures));
  return true;
}

void plan(const Options& options) {
  const Budget budget_text = Budget::parse(options.plan.budget);
  const PlanRequest request = options.plan.request(options.memory.mode());
  expect_one_standard_output(
      {{"--out", options.out}, {"--timeline", options.timeline}, {"--json", options.json}});
  for (const std::string& path : {options.out, options.timeline, options.json}) {
    expect_writable(path);
  }
  const Target target = find_target(options);
  const nets::Network network = options.workload.network();
  const Workload workload{network, *target.sizing, options.workload.step()};
  const prefetch::TaskGraph& graph = workload.training().graph;
  const prefetch::Profile profile = make_profile(options, target, graph);
  const Bytes available = target.machine ? target.machine->near_memory : workload.need().roomy;
  const Bytes budget = budget_text.resolve(workload.need(), available);
  try {
    if (!options.sub_batch.is_off() &&
        plan_in_sub_batches(options, target, network, workload, budget)) {
      return;
    }
    const Planned planned = make_plan(workload, profile, budget, request);
    write(options, planned, graph);
    json figures = to_json(planned, workload, profile, budget);
    if (options.model == "paleo") add_paleo(planned, workload, profile, figures);
    report(options, prefetch::cut(options.workload.batch, options.workload.batch),
           std::move(figures));
  } catch (const BudgetTooSmall& complaint) {
    write_infeasible(options, workload, budget, complaint.smallest());
    throw;
  }
}

}  // namespace

void add_plan_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("plan", "Plan, verify and simulate a step; needs no device");
  const auto options = std::make_shared<Options>();  // shared: the callback keeps it
  options->workload.add_to(*command);
  options->processor.add_threads_to(*command);
  options->memory.add_mode_to(*command);
  options->plan.add_to(*command);
  options->sub_batch.add_to(*command);
  auto* const machine = command->add_option(
      "--machine", options->machine,
      "Machine to plan for: k40m, v100, a100, h100, h200, a file (prefetch/README.md), or host: "
      "a model of the two-core machine Spillway was built on, with tensors as this machine lays "
      "them out (default: host)");
  machine->check(check_machine);
  command->add_option("--profile", options->profile, "Times measured by spillway profile")
      ->excludes(machine);
  command->add_option("--out", options->out, "Write the plan here, for spillway train --plan");
  command->add_option("--timeline", options->timeline,
                      "Write the predicted step here as a Chrome trace (opens in Perfetto)");
  command->add_option("--json", options->json, "Write the figures here as JSON, - for stdout");
  command
      ->add_option("--model", options->model,
                   "simulate: predict the step by simulating the plan; paleo: besides, by the "
                   "analytic model OOC-Paleo of the strategy closest to the planner's")
      ->check(CLI::IsMember({"simulate", "paleo"}))
      ->capture_default_str();
  command->footer("Example: spillway plan --net vgg16 --batch 256 --machine v100 --budget 50%");
  command->callback([options] { plan(*options); });
}

}  // namespace spillway::cli
