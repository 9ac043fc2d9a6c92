#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/bounds/bounds.h"
#include "prefetch/far_update.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/files/profile_file.h"
#include "prefetch/files/trace.h"
#include "prefetch/gradient_exchange.h"
#include "prefetch/interconnect.h"
#include "prefetch/placement/placed_step.h"
#include "prefetch/planner.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/runtime/given_step.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/simulate/chrome_trace.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/update_order.h"
#include "prefetch/verify/verify.h"
#include "src/dropin/planning/plan_of_trace.h"
#include "tests/fuzz/drawn_trace.h"
#include "tests/fuzz/mutation.h"
#include "tests/fuzz/target.h"
#include "tests/prefetch/toy.h"
#include "tests/prefetch/toy_files.h"
#include "um/error.h"

namespace spillway::fuzz {
namespace {

using nlohmann::json;
using prefetch::JsonFile;
using prefetch::Plan;
using prefetch::Problem;
using prefetch::Profile;
using prefetch::TaskGraph;
using prefetch::Trace;
using um::Bytes;

// Returns a generator that depends only on the input, so that a case can be repeated.
Generator generator_of(const std::string& input) {
  return Generator{std::hash<std::string>{}(input)};
}

prefetch::LinkProfile read_drawn_link(Generator& generator) {
  const JsonFile file{drawn_link(generator).dump(), "the link"};
  return prefetch::read_link(file.root());
}

// ---- uses of a plan

void draw(const TaskGraph& graph, const Plan& plan, const Profile& profile) {
  const prefetch::Timeline timeline = prefetch::simulate(graph, plan, profile);
  const json drawn =
      prefetch::to_chrome_trace(graph, plan, {{.name = "predicted", .timeline = timeline}});
  if (drawn.dump().empty() || timeline.makespan() < um::Nanoseconds{0}) {
    throw std::logic_error{"a step ends before it begins"};
  }
  static_cast<void>(prefetch::facts_of(plan, graph));
}

// Prepares a plan as the runtime does before it runs.
void prepare(const TaskGraph& graph, const Plan& plan) {
  if (plan.residency != prefetch::Residency::kPlanned) return;
  const prefetch::StepLayout layout{graph, plan};
  static_cast<void>(prefetch::make_program(plan));
  if (!moves_whole_blocks(plan, graph)) return;
  static_cast<void>(prefetch::place_step(graph, plan, layout.block_sizes.pool(plan.budget)));
}

void expect_sound(const Problem& problem, const Plan& plan) {
  const auto verdict = prefetch::verify(problem.graph, plan);
  if (const auto* const violation = std::get_if<prefetch::Violation>(&verdict)) {
    throw std::logic_error{"the plan of " + plan.planner + " must not run: " + violation->reason};
  }
  draw(problem.graph, plan, problem.profile);
  prepare(problem.graph, plan);
}

// ---- planning

// Chooses two planners, or in one of 16 cases all of them.
std::vector<std::string> chosen_planners(Generator& generator) {
  if (generator() % 16 != 0) return {"capacity", "fractional"};
  std::vector<std::string> names;
  for (const auto& planner : prefetch::planners()) names.emplace_back(planner->name());
  return names;
}

// Only some planners support far updates, and page faults do not support exchanges.
bool may_plan(const prefetch::Planner& planner, const TaskGraph& graph) {
  return (graph.far_updates.empty() || planner.updates_far()) &&
         (graph.exchanges.empty() || planner.name() != "on-demand");
}

std::vector<Bytes> chosen_budgets(const prefetch::NearNeed& need, Bytes page,
                                  Generator& generator) {
  const std::uint64_t range = need.resident.count() - need.smallest.count();
  std::vector<Bytes> budgets{need.smallest, need.smallest + Bytes{range / 2}};
  const std::vector<Bytes> others{um::saturating_difference(need.smallest, page),
                                  need.smallest + page,
                                  need.resident,
                                  need.resident + need.resident,
                                  Bytes{1ULL << 62U},
                                  Bytes{1ULL << 63U},
                                  Bytes{(1ULL << 63U) - 2},
                                  Bytes{~0ULL}};
  for (int i = 0; i < 2; ++i) budgets.push_back(others[generator() % others.size()]);
  return budgets;
}

// Returns a chunk large enough for a plan of few moves, so that a case is fast.
Bytes chunk_of(const TaskGraph& graph, const Profile& profile, Bytes page) {
  Bytes all;
  for (const prefetch::DataBlock& block : graph.data) all += block.size;
  return std::max(prefetch::chunk_for(profile.link), um::round_up(Bytes{all.count() / 1024}, page));
}

void plan_all(const TaskGraph& graph, const Profile& profile, Generator& generator) {
  const Bytes page = prefetch::choose_page(graph);
  const prefetch::NearNeed need = near_need(graph, prefetch::BlockSizes{graph, page});
  const std::vector<std::string> names = chosen_planners(generator);
  for (const Bytes budget : chosen_budgets(need, page, generator)) {
    const Problem problem{.graph = graph,
                          .profile = profile,
                          .budget = budget,
                          .page = page,
                          .chunk = chunk_of(graph, profile, page),
                          .whole_blocks = generator() % 2 == 0,
                          .may_recompute = generator() % 2 == 0};
    for (const std::string& name : names) {
      const prefetch::Planner& planner = prefetch::find_planner(name);
      if (!may_plan(planner, graph)) continue;
      try {
        const auto planned = planner.plan(problem);
        if (const auto* const plan = std::get_if<Plan>(&planned)) expect_sound(problem, *plan);
      } catch (const um::ContractError& error) {
        throw std::logic_error{name + ": " + error.what()};
      }
    }
    if (budget >= need.smallest) static_cast<void>(prefetch::lower_bounds(problem));
  }
}

// Returns the step unchanged, as one of several ranks, or with far updates.
TaskGraph drawn_variant(const Trace& trace, Bytes page, Generator& generator) {
  const std::size_t way = generator() % 8;
  if (way == 0) {
    const std::vector<prefetch::TaskId> updates = prefetch::far_updatable(trace.graph, page);
    return prefetch::with_far_updates(trace.graph, updates);
  }
  if (way == 1) {
    TaskGraph graph = prefetch::with_exchanges(trace.graph);
    const std::vector<prefetch::TaskId> order = prefetch::update_order(graph);
    return prefetch::in_order(std::move(graph), order);
  }
  return trace.graph;
}

// Returns the times of `trace` for its step or a variant, matched by the names of tasks.
Profile profile_of(const TaskGraph& graph, const Trace& trace, const prefetch::LinkProfile& link) {
  Profile profile{.source = "drawn", .graph = fingerprint(graph), .durations = {}, .link = link};
  for (const prefetch::Task& task : graph.tasks) {
    const auto same = std::ranges::find(trace.graph.tasks, task.name, &prefetch::Task::name);
    profile.durations.push_back(
        trace.durations[static_cast<std::size_t>(same - trace.graph.tasks.begin())]);
  }
  profile.far_updates = prefetch::far_update_times(graph, link);
  profile.exchanges = prefetch::exchange_times(graph, {.shares_link = true}, link);
  return profile;
}

void read_trace(const std::string& input, const std::filesystem::path& /*folder*/) {
  Generator generator = generator_of(input);
  const Trace trace =
      prefetch::read_trace(JsonFile{input, "input"}, {.offload_weights = generator() % 4 == 0});
  const TaskGraph graph = drawn_variant(trace, prefetch::choose_page(trace.graph), generator);
  plan_all(graph, profile_of(graph, trace, read_drawn_link(generator)), generator);
}

// ---- plans and profiles of known steps

struct KnownStep {
  TaskGraph graph;
  Profile profile;
};

// Returns the small step unchanged, with far updates and as one of several ranks, and random steps.
std::vector<KnownStep> known_steps() {
  const prefetch::LinkProfile link = prefetch::testing::toy_link();
  std::vector<KnownStep> steps;
  const auto add = [&](TaskGraph graph, const Trace& trace) {
    Profile profile = profile_of(graph, trace, link);
    steps.push_back({.graph = std::move(graph), .profile = std::move(profile)});
  };
  const Trace small = prefetch::read_trace(
      JsonFile{prefetch::testing::small_trace().dump(), "known"}, {.offload_weights = true});
  add(small.graph, small);
  const Bytes page = prefetch::choose_page(small.graph);
  add(prefetch::with_far_updates(small.graph, prefetch::far_updatable(small.graph, page)), small);
  const TaskGraph exchanged = prefetch::with_exchanges(small.graph);
  add(prefetch::in_order(exchanged, prefetch::update_order(exchanged)), small);
  Generator generator{4711};
  while (steps.size() < 8) {
    try {
      const Trace drawn =
          prefetch::read_trace(JsonFile{drawn_trace(generator, false).dump(), "drawn"});
      add(drawn.graph, drawn);
    } catch (const um::Error&) {
      continue;  // exceeds a limit
    }
  }
  return steps;
}

// Returns `input` with the stamp of `graph`, or unchanged if it is not an object.
JsonFile resealed(const std::string& input, const TaskGraph& graph) {
  JsonFile file{input, "input"};
  if (!file.value().is_object()) return file;
  json value = file.value();
  value["graph"] = prefetch::graph_stamp(fingerprint(graph));
  return {value.dump(-1, ' ', false, json::error_handler_t::replace), "input"};
}

// Calls `act` for each step. Throws the last error if all steps fail.
void try_each(const std::vector<KnownStep>& steps,
              const std::function<void(const KnownStep&)>& act) {
  std::size_t refused = 0;
  for (const KnownStep& step : steps) {
    try {
      act(step);
    } catch (const um::Error&) {
      if (++refused == steps.size()) throw;
    }
  }
}

void use_plan(const std::string& input, const KnownStep& step) {
  const Plan plan = prefetch::read_plan(resealed(input, step.graph), step.graph);
  if (std::holds_alternative<prefetch::Violation>(prefetch::verify(step.graph, plan))) return;
  draw(step.graph, plan, step.profile);
  for (const bool copies_while_read : {false, true}) {
    Profile other = step.profile;
    other.link.copies_while_read = copies_while_read;
    other.link.is_duplex = !copies_while_read;
    draw(step.graph, plan, other);
  }
  prepare(step.graph, plan);
}

void use_profile(const std::string& input, const KnownStep& step) {
  Generator generator = generator_of(input);
  Profile profile = prefetch::read_profile(resealed(input, step.graph), step.graph);
  profile.far_updates = prefetch::far_update_times(step.graph, profile.link);
  profile.exchanges = prefetch::exchange_times(step.graph, {.shares_link = true}, profile.link);
  plan_all(step.graph, profile, generator);
}

// Plans each at the smallest budget, where most blocks move.
std::vector<std::string> plans_of(const KnownStep& step) {
  std::vector<std::string> texts;
  const Bytes page = prefetch::choose_page(step.graph);
  const prefetch::NearNeed need = near_need(step.graph, prefetch::BlockSizes{step.graph, page});
  for (const char* const name : {"capacity", "fractional", "on-demand"}) {
    const prefetch::Planner& planner = prefetch::find_planner(name);
    if (!may_plan(planner, step.graph)) continue;
    const auto planned = planner.plan({.graph = step.graph,
                                       .profile = step.profile,
                                       .budget = need.smallest,
                                       .page = page,
                                       .chunk = chunk_of(step.graph, step.profile, page),
                                       .may_recompute = true});
    if (const auto* const plan = std::get_if<Plan>(&planned)) {
      texts.push_back(to_json(*plan, step.graph).dump());
    }
  }
  return texts;
}

json& one_of(json& array, Generator& generator) { return array[generator() % array.size()]; }

// Increases or decreases `number` a little.
void nudge(json& number, Generator& generator) {
  const auto value = number.get<std::uint64_t>();
  number = generator() % 2 == 0 ? value + 1 + generator() % 2 : value - std::min(value, 1UL);
}

void change_plan(json& plan, Generator& generator) {
  json& queue = plan[generator() % 3 == 0   ? "runs"
                     : generator() % 2 == 0 ? "offloads"
                                            : "prefetches"];
  if (queue.empty()) return;
  json& entry = one_of(queue, generator);
  switch (generator() % 9) {
    case 0:
      entry["free_after"] = generator() % (plan["runs"].size() + 2);
      break;
    case 1:
      entry["clean"] = generator() % 2 == 0;
      break;
    case 2:
      std::swap(entry, one_of(queue, generator));
      break;
    case 3:
      queue.push_back(entry);
      break;
    case 4:
      queue.erase(generator() % queue.size());
      break;
    case 5:
      entry["recomputation"] = generator() % 2 == 0;
      break;
    case 6:
      plan["page_bytes"] = 1ULL << (11 + generator() % 12);
      break;
    default:
      nudge(entry["after"][generator() % 3], generator);
  }
}

// Returns a plan of one of the steps with up to three small changes, so that it may stay valid.
std::string drawn_plan(const std::vector<std::string>& plans, Generator& generator) {
  json plan = json::parse(plans[generator() % plans.size()]);
  for (std::size_t i = 1 + generator() % 3; i > 0; --i) change_plan(plan, generator);
  return plan.dump();
}

Target plan_target(const std::shared_ptr<const std::vector<KnownStep>>& steps) {
  std::vector<std::string> seeds;
  for (const KnownStep& step : *steps) {
    for (std::string& plan : plans_of(step)) seeds.push_back(std::move(plan));
  }
  return {.name = "plan",
          .seeds = seeds,
          .read =
              [steps](const auto& input, const auto&) {
                try_each(*steps, [&](const KnownStep& step) { use_plan(input, step); });
              },
          .draw = [seeds](Generator& generator) { return drawn_plan(seeds, generator); }};
}

Target profile_target(const std::shared_ptr<const std::vector<KnownStep>>& steps) {
  std::vector<std::string> seeds;
  seeds.reserve(steps->size());
  for (const KnownStep& step : *steps) {
    seeds.push_back(to_json(step.profile, step.graph).dump());
  }
  return {.name = "profile",
          .seeds = std::move(seeds),
          .read = [steps](const auto& input, const auto&) {
            try_each(*steps, [&](const KnownStep& step) { use_profile(input, step); });
          }};
}

// ---- the planning library

void ask_library(const std::string& input, const std::filesystem::path& /*folder*/) {
  const std::size_t line = std::min(input.find('\n'), input.size());
  const json answer = dropin::plan_trace(input.substr(std::min(line + 1, input.size())),
                                         dropin::read_plan_request(input.substr(0, line)));
  if (answer.dump(-1, ' ', false, json::error_handler_t::replace).empty()) {
    throw std::logic_error{"no answer"};
  }
}

std::string drawn_question(Generator& generator) {
  const std::vector<std::string> planners = chosen_planners(generator);
  json request{{"budget_bytes", generator() >> (generator() % 64)},
               {"planner", planners[generator() % planners.size()]},
               {"recompute", generator() % 2 == 0},
               {"parts", generator() % 2 == 0},
               {"offload_weights", generator() % 2 == 0},
               {"timeline", generator() % 4 == 0}};
  if (generator() % 2 == 0) request["link"] = drawn_link(generator);
  return request.dump() + '\n' + drawn_trace(generator, false).dump();
}

}  // namespace

std::vector<Target> planning_targets() {
  // shared by both targets
  const auto steps = std::make_shared<const std::vector<KnownStep>>(known_steps());
  const std::string small = prefetch::testing::small_trace().dump();
  return {{.name = "trace",
           .seeds = {small},
           .read = read_trace,
           .draw =
               [](Generator& generator) {
                 return drawn_trace(generator, generator() % 4 == 0).dump();
               }},
          plan_target(steps),
          profile_target(steps),
          {.name = "planning",
           .seeds = {R"({"budget_bytes":33554432,"timeline":true,"parts":true})" + ('\n' + small)},
           .read = ask_library,
           .draw = drawn_question}};
}

}  // namespace spillway::fuzz
