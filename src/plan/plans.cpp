#include "src/plan/plans.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "prefetch/files/machine.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/runtime/pinned_blocks.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/verify/verify.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::Infeasible;
using prefetch::Plan;
using prefetch::Profile;
using prefetch::TaskGraph;
using um::Bytes;

// Times of the evaluation step: its tasks are the forward tasks of the (first) training step, by
// name, with as many samples; what is not there goes by the model.
Profile evaluation_profile(const Workload& workload, const Profile& training) {
  const TaskGraph& graph = workload.evaluation().graph;
  const TaskGraph& measured = workload.training_steps().front().step.graph;
  Profile profile = prefetch::model_profile(graph, prefetch::find_machine("host"));
  profile.link = training.link;
  std::unordered_map<std::string, std::size_t> by_name;
  for (std::size_t t = 0; t < training.durations.size(); ++t) {
    by_name.emplace(measured.tasks[t].name, t);
  }
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const auto found = by_name.find(graph.tasks[t].name);
    if (found == by_name.end()) continue;
    const std::vector<um::Nanoseconds>& durations = training.durations[found->second];
    if (durations.size() == profile.durations[t].size()) profile.durations[t] = durations;
  }
  return profile;
}

// As the link wants it; more for a step of many terabytes, whose moves would be too many to plan.
Bytes chunk_for(const TaskGraph& graph, const prefetch::LinkProfile& link) {
  constexpr std::uint64_t kMaxMoves = 1ULL << 16U;
  Bytes all;
  for (const prefetch::DataBlock& block : graph.data) all += block.size;
  Bytes chunk = prefetch::chunk_for(link);
  while (kMaxMoves * chunk < all) chunk += chunk;
  return chunk;
}

// `step_budget` is what `run_budget` leaves for this step; complaints speak of the run's.
Plan plan_graph(const TaskGraph& graph, const Profile& profile, Bytes run_budget, Bytes step_budget,
                Bytes page, const PlanRequest& request) {
  const bool is_resident = request.memory == MemoryMode::kResident;
  const prefetch::Planner& planner =
      is_resident ? prefetch::find_planner("resident") : *request.planner;
  auto planned = planner.plan(make_problem(graph, profile, step_budget, page, request));
  if (auto* const reason = std::get_if<Infeasible>(&planned)) {
    reason->smallest_budget += run_budget - step_budget;
    throw BudgetTooSmall{to_string(*reason, graph, run_budget), reason->smallest_budget};
  }
  return std::get<Plan>(std::move(planned));
}

void expect_verified(const TaskGraph& graph, const Plan& plan, const std::string& name) {
  const auto verdict = prefetch::verify(graph, plan);
  if (const auto* violation = std::get_if<prefetch::Violation>(&verdict)) {
    throw um::Error{name + " must not run: " + violation->reason};
  }
}

// What a run needs in which nothing ever moves: its state, small tensors, and the slab.
Bytes resident_need(const Workload& workload, const Plans& plans) {
  Bytes state;
  Bytes buffer;
  Bytes slab;
  const auto add = [&](const TaskGraph& graph, const Plan& plan) {
    const prefetch::StepLayout layout{graph, plan};
    const Bytes own = prefetch::PinnedBlocks::buffer_size(layout.graph, layout.block_sizes);
    state = std::max(state, layout.block_sizes.pinned() - own);
    buffer = std::max(buffer, own);
    slab = std::max(slab, layout.placement.extent);
  };
  for (std::size_t i = 0; i < plans.training.size(); ++i) {
    add(workload.training_steps()[i].step.graph, plans.training[i]);
  }
  add(workload.evaluation().graph, plans.evaluation);
  return state + buffer + slab;
}

void settle_resident_budget(const Workload& workload, Bytes budget, Plans& plans) {
  plans.budget = resident_need(workload, plans);
  if (plans.budget > budget) {
    throw um::Error{"all of it resident needs " + um::to_string(plans.budget) + ", more than " +
                    um::to_string(budget) + "; use --memory managed or copy, or a larger --budget"};
  }
}

Plans finish(std::vector<PlanOfFile> training, const Workload& workload,
             std::span<const Profile> profiles, Bytes budget, const PlanRequest& request) {
  Plans plans{.budget = budget, .training = {}, .evaluation = {}};
  plans.evaluation =
      plan_graph(workload.evaluation().graph, evaluation_profile(workload, profiles.front()),
                 budget, workload.evaluation_budget(budget), workload.page(), request);
  for (PlanOfFile& file : training) {
    const std::size_t index = plans.training.size();
    expect_verified(workload.training_steps()[index].step.graph, file.plan, file.name);
    plans.training.push_back(std::move(file.plan));
  }
  expect_verified(workload.evaluation().graph, plans.evaluation, "the plan of the evaluation step");
  if (request.memory == MemoryMode::kResident) settle_resident_budget(workload, budget, plans);
  return plans;
}

// Complains about the plan of a file for one of the training steps.
void expect_usable(const PlanOfFile& file, const StepToPlan& step, Bytes budget,
                   const PlanRequest& request) {
  const auto& [plan, name] = file;
  if (plan.page != step.page) {
    throw um::Error{name + " moves pages of " + um::to_string(plan.page) +
                    ", but this network's are " + um::to_string(step.page)};
  }
  if (request.memory == MemoryMode::kCopy &&
      (plan.residency == prefetch::Residency::kOnDemand || !moves_whole_blocks(plan, step.graph))) {
    throw um::Error{name +
                    " moves parts of blocks, which only unified memory can do; make a plan for "
                    "explicit copies with spillway plan --memory copy"};
  }
  if (request.memory != MemoryMode::kResident && plan.budget > step.budget(budget)) {
    throw um::Error{name + " was made for a budget of " + um::to_string(plan.budget) +
                    ", more than the " + um::to_string(budget) + " given here"};
  }
}

}  // namespace

prefetch::Problem make_problem(const TaskGraph& graph, const Profile& profile, Bytes budget,
                               Bytes page, const PlanRequest& request) {
  return {.graph = graph,
          .profile = profile,
          .budget = budget,
          .page = page,
          .chunk = chunk_for(graph, profile.link),
          .whole_blocks = request.memory == MemoryMode::kCopy,
          .may_recompute = request.may_recompute};
}

void expect_feasible(const StepToPlan& step, Bytes budget) {
  if (budget >= step.need.smallest) return;
  const Infeasible reason{.task = step.need.largest_task, .smallest_budget = step.need.smallest};
  throw BudgetTooSmall{to_string(reason, step.graph, budget), step.need.smallest};
}

Plan plan_step(const StepToPlan& step, const Profile& profile, Bytes budget,
               const PlanRequest& request) {
  expect_feasible(step, budget);
  return plan_graph(step.graph, profile, budget, step.budget(budget), step.page, request);
}

prefetch::Bounds step_bounds(const StepToPlan& step, const Profile& profile, Bytes budget,
                             const PlanRequest& request) {
  expect_feasible(step, budget);
  return prefetch::lower_bounds(
      make_problem(step.graph, profile, step.budget(budget), step.page, request));
}

Plans make_plans(const Workload& workload, std::span<const Profile> profiles, Bytes budget,
                 const PlanRequest& request) {
  um::expects(profiles.size() == workload.training_steps().size(), "a profile for each step");
  expect_feasible(workload.neediest_to_plan(), budget);
  std::vector<PlanOfFile> plans;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    Plan plan = plan_step(workload.training_to_plan(i), profiles[i], budget, request);
    std::string name = "the plan of planner " + plan.planner;
    plans.push_back({.plan = std::move(plan), .name = std::move(name)});
  }
  return finish(std::move(plans), workload, profiles, budget, request);
}

Plans make_plans(const Workload& workload, const Profile& profile, Bytes budget,
                 const PlanRequest& request) {
  return make_plans(workload, std::span{&profile, 1}, budget, request);
}

Plans use_plans(std::vector<PlanOfFile> files, const Workload& workload,
                std::span<const Profile> profiles, Bytes budget, const PlanRequest& request) {
  um::expects(files.size() == workload.training_steps().size(), "a plan for each step");
  for (std::size_t i = 0; i < files.size(); ++i) {
    expect_usable(files[i], workload.training_to_plan(i), budget, request);
  }
  return finish(std::move(files), workload, profiles, budget, request);
}

Plans use_plan(Plan plan, const std::string& name, const Workload& workload, const Profile& profile,
               Bytes budget, const PlanRequest& request) {
  std::vector<PlanOfFile> files;
  files.push_back({.plan = std::move(plan), .name = name});
  return use_plans(std::move(files), workload, std::span{&profile, 1}, budget, request);
}

}  // namespace spillway
