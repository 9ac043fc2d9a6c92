#include "src/dropin/planning/plan_of_trace.h"

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/bounds/bounds.h"
#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/files/profile_file.h"
#include "prefetch/files/trace.h"
#include "prefetch/planner.h"
#include "prefetch/planners/answer.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/planners/smallest_budget.h"
#include "prefetch/planners/variant_search.h"
#include "prefetch/simulate/chrome_trace.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway::dropin {

PlanOfTraceRequest read_plan_request(const std::string& text) {
  const prefetch::JsonFile file{text, "the request"};
  const prefetch::JsonView root = file.root();
  const std::vector<std::string> known{"budget_bytes", "planner",         "recompute", "parts",
                                       "link",         "offload_weights", "timeline"};
  prefetch::expect_known_keys(file.value(), root, known);
  PlanOfTraceRequest request;
  const auto set = [&](const char* key, bool& value) {
    if (root.has(key)) value = root.at(key).boolean();
  };
  set("recompute", request.may_recompute);
  set("parts", request.in_parts);
  set("offload_weights", request.offload_weights);
  set("timeline", request.with_timeline);
  if (root.has("planner")) request.planner = root.at("planner").string();
  if (root.has("budget_bytes")) request.budget = um::Bytes{root.at("budget_bytes").integer()};
  request.link =
      root.has("link") ? prefetch::read_link(root.at("link")) : prefetch::find_machine("host").link;
  return request;
}

namespace {

using nlohmann::json;
using prefetch::Profile;

// `claim` names what the problem, or the planner's rules, need.
json refused(const prefetch::Planner& planner, const prefetch::Problem& problem,
             const prefetch::Infeasible& claim) {
  const prefetch::Infeasible why = prefetch::smallest_budget(planner, problem, claim);
  return {{"sentence", prefetch::to_string(why, problem.graph, problem.budget)},
          {"task", problem.graph[why.task].name},
          {"smallest_bytes", why.smallest_budget.count()}};
}

json figures_of(const prefetch::Answer& answer, const prefetch::Problem& problem) {
  json figures = prefetch::to_json(answer, problem);
  figures["budget_bytes"] = problem.budget.count();
  figures["compute_seconds"] = um::seconds(prefetch::fastest_step(problem.profile));
  figures["bounds"] = prefetch::to_json(prefetch::lower_bounds(problem));
  figures["tasks"] = problem.graph.tasks.size();
  if (json variants = prefetch::variants_json(problem.graph); !variants.empty()) {
    figures["variants"] = std::move(variants);
  }
  return figures;
}

// Frameworks place blocks themselves.
constexpr prefetch::AskOptions kAsked{.fixes_places = false};

json answer_json(const prefetch::Planner& planner, const prefetch::Problem& problem,
                 const std::variant<prefetch::Answer, prefetch::Infeasible>& answer,
                 bool with_timeline) {
  if (const auto* const refusal = std::get_if<prefetch::Infeasible>(&answer)) {
    return {{"refused", refused(planner, problem, *refusal)}};
  }
  const auto& found = std::get<prefetch::Answer>(answer);
  json result{{"plan", prefetch::to_json(found.plan, problem.graph)},
              {"figures", figures_of(found, problem)}};
  if (with_timeline) {
    result["timeline"] = prefetch::to_chrome_trace(
        problem.graph, found.plan, {{.name = "predicted", .timeline = found.timeline}});
  }
  return result;
}

// As planner.plan(), in the variants with the shortest plan.
json plan_variants(const prefetch::Planner& planner, const prefetch::Trace& trace,
                   const prefetch::Problem& problem, bool with_timeline) {
  const auto step_of = [&](const prefetch::VariantChoice& choice) {
    prefetch::TimedStep step = trace.varied.with(choice);
    Profile profile = prefetch::trace_profile(
        {.name = trace.name, .graph = step.graph, .durations = std::move(step.durations)},
        problem.profile.link);
    return prefetch::ChosenStep{
        .graph = std::make_unique<const prefetch::TaskGraph>(std::move(step.graph)),
        .profile = std::move(profile)};
  };
  const prefetch::VariedAnswer found =
      prefetch::plan_varied(planner, trace.varied, step_of, problem, kAsked);
  json result = answer_json(planner, problem.with(*found.step.graph, found.step.profile),
                            found.answer, with_timeline);
  if (result.contains("figures")) {
    const Profile fastest = step_of(trace.varied.fastest()).profile;
    result["figures"]["compute_seconds"] = um::seconds(prefetch::fastest_step(fastest));
  }
  return result;
}

}  // namespace

json plan_trace(const std::string& trace, const PlanOfTraceRequest& request) {
  const prefetch::Trace read = prefetch::read_trace(prefetch::JsonFile{trace, "the trace"},
                                                    {.offload_weights = request.offload_weights});
  const um::Bytes page = prefetch::choose_page(read.graph);
  const Profile profile = prefetch::trace_profile(read, request.link);
  const prefetch::Planner& planner = prefetch::find_planner(request.planner);
  const bool has_variants = !read.varied.groups.empty() && planner.chooses_variants();
  prefetch::NearNeed need = prefetch::near_need(read.graph, prefetch::BlockSizes{read.graph, page});
  if (has_variants) {
    const prefetch::TaskGraph leanest = read.varied.with(read.varied.leanest(page)).graph;
    const prefetch::NearNeed least =
        prefetch::near_need(leanest, prefetch::BlockSizes{leanest, page});
    need.smallest = least.smallest;
    need.largest_task = least.largest_task;
  }
  json answer{
      {"needs",
       {{"resident_bytes", need.resident.count()}, {"smallest_bytes", need.smallest.count()}}}};
  if (!request.budget) return answer;
  const prefetch::Problem problem{.graph = read.graph,
                                  .profile = profile,
                                  .budget = *request.budget,
                                  .page = page,
                                  .chunk = prefetch::chunk_for(request.link),
                                  .whole_blocks = !request.in_parts,
                                  .may_recompute = request.may_recompute,
                                  .may_reorder = false};  // the caller runs its own order
  if (*request.budget < need.smallest) {
    answer["refused"] =
        refused(planner, problem, {.task = need.largest_task, .smallest_budget = need.smallest});
  } else if (has_variants) {
    answer.update(plan_variants(planner, read, problem, request.with_timeline));
  } else {
    answer.update(answer_json(planner, problem, prefetch::ask(planner, problem, kAsked),
                              request.with_timeline));
  }
  return answer;
}

}  // namespace spillway::dropin
