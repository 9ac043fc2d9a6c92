#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/files/trace.h"
#include "prefetch/gradient_exchange.h"
#include "prefetch/placement/placed_step.h"
#include "prefetch/plan.h"
#include "prefetch/planners/answer.h"
#include "prefetch/profile.h"
#include "prefetch/simulate/chrome_trace.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/task_graph.h"
#include "src/cli/commands.h"
#include "src/cli/flags/cli11.h"
#include "src/cli/flags/flag_values.h"
#include "src/cli/flags/memory_flags.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/flags/plan_flags.h"
#include "src/cli/flags/rank_flags.h"
#include "src/cli/plan_figures.h"
#include "src/cli/plan_subject.h"
#include "src/cli/terminal/terminal.h"
#include "src/plan/bucket_choice.h"
#include "src/plan/budget.h"
#include "src/plan/micro_batch_choice.h"
#include "src/plan/plans.h"
#include "src/plan/state_choice.h"
#include "src/program/micro_batches.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

// The flags --noise and --seed: simulate a plan with varying task times.
struct NoiseFlags {
  std::string noise;
  std::uint64_t seed = 0;

  void add_to(CLI::App& app);

  [[nodiscard]] bool is_wanted() const { return !noise.empty(); }
  // Simulates the plan five times, with each task's time multiplied by a random number around 1.
  // Returns mean and worst makespan. Requires: is_wanted().
  [[nodiscard]] nlohmann::json try_out(const prefetch::TaskGraph& graph, const prefetch::Plan& plan,
                                       const prefetch::Profile& profile) const;
};

constexpr int kDraws = 5;

void NoiseFlags::add_to(CLI::App& app) {
  auto* const fraction =
      app.add_option(
             "--noise", noise,
             "Also simulate with task times varied at random by up to this much, e.g. 10%: mean "
             "and worst of five runs")
          ->check(check_noise);
  app.add_option("--seed", seed, "Random seed of the first run of --noise; the others follow")
      ->check(check_whole_number)
      ->needs(fraction);
}

nlohmann::json NoiseFlags::try_out(const prefetch::TaskGraph& graph, const prefetch::Plan& plan,
                                   const prefetch::Profile& profile) const {
  const double fraction = parse_percent(noise).value();
  double sum = 0;
  double worst = 0;
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const prefetch::SimulateOptions options{.noise = fraction, .seed = seed + draw};
    const double makespan =
        um::seconds(prefetch::simulate(graph, plan, profile, options).makespan());
    sum += makespan;
    worst = std::max(worst, makespan);
  }
  return {{"fraction", fraction},
          {"seed", seed},
          {"draws", kDraws},
          {"mean_makespan_seconds", sum / kDraws},
          {"worst_makespan_seconds", worst}};
}

// Returns choose_buckets() for several ranks; `one` is the step of a single processor. Plans the
// step of each rule within `budget`, as plan_best() does.
prefetch::BucketRule planned_buckets(const PlanSubject& one, const RankFlags& ranks,
                                     um::Bytes budget, const PlanRequest& request) {
  const auto time_of = [&](const prefetch::BucketRule& rule,
                           const PlanRequest& own) -> std::optional<um::Nanoseconds> {
    PlanSubject subject = one.exchanged(ranks.interconnect(), rule, ranks.division());
    subject.choose_state(own);
    try {
      return plan_best(subject, budget, own).timeline.makespan();
    } catch (const BudgetTooSmall&) {
      return std::nullopt;
    }
  };
  return choose_buckets(one.step->graph, ranks.bucket.rule(), request, time_of);
}

using nlohmann::json;
using um::Bytes;

struct PlanCommandFlags {
  SubjectFlags subject;
  MemoryFlags memory;
  PlanFlags plan;
  std::string moves = "auto";
  NoiseFlags noise;
  MicroBatchFlags micro_batches;
  RankFlags ranks;
  std::string file;
  std::string out;
  std::string trace_out;
  std::string timeline;
  std::string json;
  std::string model = "simulate";
};

// Adds the places of blocks in the copy mode. `use` computes them, which takes longer than
// planning.
template <typename Use>
void add_places(MemoryMode memory, const Use& use, json& figures) {
  if (memory != MemoryMode::kCopy) return;
  if (const std::optional<prefetch::ArenaUse> places = use())
    figures["placement"] = places_json(*places);
}

void write(const PlanCommandFlags& options, const prefetch::Answer& answer,
           const prefetch::TaskGraph& graph) {
  if (!options.out.empty()) {
    prefetch::write_json(prefetch::to_json(answer.plan, graph), options.out);
  }
  if (options.timeline.empty()) return;
  prefetch::write_json(
      prefetch::to_chrome_trace(graph, answer.plan,
                                {{.name = "predicted", .timeline = answer.timeline}}),
      options.timeline);
}

// The step with its state near, whatever plans may do with it.
void write_trace(const PlanSubject& subject, const std::string& path) {
  prefetch::Trace trace;
  if (subject.workload) {
    trace.graph = subject.workload->training().graph;
    trace.durations = subject.all_near().durations;
  } else {
    trace = *subject.trace;
  }
  trace.name = subject.title;
  prefetch::write_json(to_json(trace), path);
}

void report(const PlanCommandFlags& options, const PlanSubject& subject, json figures) {
  const prefetch::BatchCut batches = subject.batches();
  figures["micro_batch_size"] = batches.size;
  figures["micro_batches"] = batches.count;
  figures.update(subject.identity);
  figures["memory"] = options.memory.memory;
  if (!options.json.empty()) prefetch::write_json(figures, options.json);
  if (options.json == "-" || options.out == "-" || options.timeline == "-") return;
  fmt::print("{}\n", subject.title);
  print_figures(figures);
  if (figures.contains("ranks")) {
    print_ranks(figures.at("ranks"), Bytes{figures.at("budget_bytes").get<std::uint64_t>()});
  }
}

// Checks before anything is built that several ranks can be planned.
void expect_ranks(const PlanCommandFlags& options, const PlanRequest& request) {
  options.ranks.expect_used();
  if (!options.ranks.are_several()) return;
  expect_exchangeable(request);
  if (options.model == "paleo") {
    throw um::Error{"OOC-Paleo's formula knows one rank only; leave out --model paleo"};
  }
}

PlanRequest request_of(const PlanCommandFlags& options) {
  PlanRequest request = options.plan.request(options.memory.planned_mode());
  if (options.moves == "auto") return request;
  if (request.state == StateRule::kFar || request.update == UpdateRule::kFar) {
    throw um::Error{"state that is far is moved; leave out --moves off, or --state and --update"};
  }
  request.may_move = false;
  request.state = StateRule::kNear;
  request.update = UpdateRule::kNear;
  return request;
}

struct OpenedSubject {
  PlanSubject subject;
  Bytes budget;
};

// The batch of `whole`, cut as the flags say to go with the budget of one rank.
PlanSubject cut_batch(const PlanCommandFlags& options, PlanSubject whole, Bytes budget,
                      const PlanRequest& request) {
  whole.expect_modelled();
  const StepOptions step = options.subject.workload.step();
  const auto search = [&] {
    return MicroBatchSearch{{.network = whole.network.value(),
                             .size_model = *whole.size_model,
                             .machine = whole.machine.value(),
                             .step = step,
                             .budget = budget,
                             .request = request}}
        .choose();
  };
  const MicroBatchChoice& choice = options.micro_batches;
  const prefetch::BatchCut batches = options.ranks.are_several()
                                         ? choice.resolve_for_ranks(step.batch)
                                         : choice.resolve(step.batch, search);
  if (batches.count == 1) return whole;
  PlanSubject cut = whole.cut(step, batches);
  if (normalizes_by_batch(cut.step->graph)) {
    tell("note: batch norm's statistics change: they are of each micro-batch alone\n");
  }
  return cut;
}

// The budget is relative to what MicroBatchChoice says; for several ranks to the need of one with
// the usual buckets.
OpenedSubject open(const PlanCommandFlags& options, const Budget& budget_text,
                   const PlanRequest& request) {
  const RankFlags& ranks = options.ranks;
  const auto with_buckets = [&](const PlanSubject& one, const prefetch::BucketRule& rule) {
    PlanSubject several = one.exchanged(ranks.interconnect(), rule, ranks.division());
    several.choose_state(request);
    return several;
  };
  const auto need_of = [&](PlanSubject& one) {
    if (ranks.are_several()) return with_buckets(one, ranks.bucket.rule()).need();
    if (one.state == nullptr) one.choose_state(request);
    return one.need();
  };
  PlanSubject whole = options.subject.open(request.memory);
  const Bytes available = whole.available;
  prefetch::NearNeed need = need_of(whole);
  const bool may_cut = options.micro_batches.is_given();
  PlanSubject one =
      may_cut ? cut_batch(options, std::move(whole), budget_text.resolve(need, available), request)
              : std::move(whole);
  if (may_cut) {
    const prefetch::NearNeed of_cut = need_of(one);
    if (ranks.are_several()) need = of_cut;
    if (!options.micro_batches.is_automatic) need.smallest = of_cut.smallest;
  }
  const Bytes budget = budget_text.resolve(need, available);
  if (!ranks.are_several()) return {.subject = std::move(one), .budget = budget};
  const prefetch::BucketRule rule =
      ranks.bucket.is_auto() ? planned_buckets(one, ranks, budget, request) : ranks.bucket.rule();
  return {.subject = with_buckets(one, rule), .budget = budget};
}

void plan(const PlanCommandFlags& options) {
  const Budget budget_text = Budget::parse(options.plan.budget);
  PlanRequest request = request_of(options);
  expect_one_standard_output({{"--out", options.out},
                              {"--timeline", options.timeline},
                              {"--json", options.json},
                              {"--trace-out", options.trace_out}});
  for (const std::string& path : {options.out, options.timeline, options.json, options.trace_out}) {
    expect_writable(path);
  }
  expect_ranks(options, request);
  const bool is_auto = request.update == UpdateRule::kAuto;
  if (options.ranks.are_several() && is_auto) request.update = UpdateRule::kNear;
  OpenedSubject question = open(options, budget_text, request);
  PlanSubject& subject = question.subject;
  Bytes budget = question.budget;
  if (!options.trace_out.empty()) write_trace(subject, options.trace_out);
  try {
    const prefetch::Answer answer = options.file.empty()
                                        ? plan_best(subject, budget, request)
                                        : plan_of_file(subject, options.file, request);
    if (!options.file.empty()) budget = answer.plan.budget;
    write(options, answer, subject.step->graph);
    json figures = figures_of(answer, subject, budget, request);
    if (options.model == "paleo") add_paleo(answer, subject, figures);
    if (options.noise.is_wanted()) {
      figures["noise"] = options.noise.try_out(subject.step->graph, answer.plan, subject.profile);
    }
    add_places(
        options.memory.planned_mode(),
        [&] { return prefetch::arena_use(subject.step->graph, answer.plan); }, figures);
    if (options.ranks.are_several()) {
      figures["ranks"] = rank_figures(options.ranks, options.subject, answer, subject, budget,
                                      request, options.subject.workload.batch);
    }
    report(options, subject, std::move(figures));
  } catch (const BudgetTooSmall& complaint) {
    if (!options.json.empty()) {
      prefetch::write_json({{"feasible", false},
                            {"planner", options.plan.planner},
                            {"budget_bytes", budget.count()},
                            {"min_budget_bytes", complaint.smallest().count()},
                            {"resident_bytes", subject.need().resident.count()}},
                           options.json);
    }
    throw;
  }
}

}  // namespace

void add_plan_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("plan", "Plan, verify and simulate a training step; needs no device");
  const auto options = std::make_shared<PlanCommandFlags>();  // shared with the callback
  options->subject.add_to(*command);
  options->memory.add_planned_mode_to(*command);
  options->plan.add_to(*command);
  command
      ->add_option("--moves", options->moves,
                   "off: nothing is offloaded or prefetched. A plan keeps the budget by the order "
                   "of tasks and by recomputing alone, or is refused")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str()
      ->group(kPlanningHeading);
  options->noise.add_to(*command);
  options->micro_batches.add_to(*command, ". Needs --machine");
  options->ranks.add_to(*command);
  command->add_option(
      "--out", options->out,
      "Write the plan to this file, for spillway train --plan; with --ranks, for as "
      "many ranks, each with this --batch and its micro-batches");
  auto* const given =
      command->add_option("--plan", options->file,
                          "Verify and simulate the plan in this file (spillway-plan, "
                          "prefetch/README.md) instead of making one");
  given->check(CLI::ExistingFile);
  for (const char* name : {"--budget", "--planner", "--recompute", "--micro-batches",
                           "--micro-batch-size", "--moves", "--ranks"}) {
    given->excludes(name);
  }
  command
      ->add_option("--trace-out", options->trace_out,
                   "Write the step with its times, its state near, as a spillway-trace to this "
                   "file, for planners of your own (prefetch/planners/README.md)")
      ->excludes("--ranks");
  command->add_option("--timeline", options->timeline,
                      "Write a Chrome trace of the predicted step to this file; Perfetto opens it");
  command->add_option("--json", options->json,
                      "Write the figures as JSON to this file, - for standard output");
  command
      ->add_option(
          "--model", options->model,
          "simulate: predict the step time by simulating the plan; paleo: also by OOC-Paleo, "
          "an analytic model, for the strategy closest to the planner")
      ->check(CLI::IsMember({"simulate", "paleo"}))
      ->capture_default_str();
  command->footer(
      "In the JSON, compute_seconds is a step with unlimited near memory and the fastest "
      "algorithms, as in spillway sweep; arithmetic_seconds is what the plan's own runs take, "
      "those that are repeated included.\n"
      "Example: spillway plan --net vgg16 --batch 256 --machine v100 --budget 50%\n"
      "Example: spillway plan --trace-in step.json --machine a100 --budget 40GB\n"
      "Example: spillway plan --net resnet50 --batch 256 --machine h100 --budget 40% --ranks 8 "
      "--interconnect 25GB/s");
  command->callback([options, command] {
    options->memory.note_idle_flags(*command);
    plan(*options);
  });
}

}  // namespace spillway::cli
