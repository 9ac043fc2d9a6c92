#include "src/cli/plan/plan_figures.h"

#include <fmt/core.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "prefetch/bounds/bounds.h"
#include "prefetch/bounds/paleo.h"
#include "prefetch/planner.h"
#include "prefetch/profile.h"
#include "src/cli/flags/duration.h"
#include "src/cli/terminal/arena_report.h"
#include "um/bytes.h"
#include "um/text/wording.h"

namespace spillway::cli {

using nlohmann::json;
using um::Bytes;

json figures_of(const Planned& planned, const PlanSubject& subject, Bytes budget) {
  const prefetch::PlanFacts facts = facts_of(planned.plan, subject.step->graph);
  return {{"feasible", true},
          {"planner", planned.plan.planner},
          {"profile", subject.profile.source},
          {"budget_bytes", budget.count()},
          {"min_budget_bytes", subject.need().smallest.count()},
          {"resident_bytes", subject.need().resident.count()},
          {"peak_bytes", planned.peak.count()},
          {"compute_seconds", um::seconds(prefetch::fastest_step(subject.all_near()))},
          {"arithmetic_seconds",
           um::seconds(prefetch::compute_time(subject.profile, planned.plan.runs))},
          {"makespan_seconds", um::seconds(planned.timeline.makespan())},
          {"bounds", prefetch::to_json(planned.bounds)},
          {"planning_seconds", um::seconds(planned.planning)},
          {"offloaded_bytes", facts.offloaded.count()},
          {"prefetched_bytes", facts.prefetched.count()},
          {"recomputed_tasks", facts.recomputed_tasks},
          {"state_far_bytes", facts.state_far.count()},
          {"far_updates", facts.far_updates},
          {"algorithms", facts.algorithms},
          {"tasks", subject.step->graph.tasks.size()},
          {"verified", true}};
}

void add_paleo(const Planned& planned, const PlanSubject& subject, json& figures) {
  const auto strategy = prefetch::paleo_strategy(planned.plan.planner);
  const auto step =
      prefetch::paleo_step(subject.step->graph, subject.profile, planned.plan, strategy);
  figures["paleo_seconds"] = um::seconds(step.makespan);
  figures["paleo_strategy"] = prefetch::to_string(strategy);
}

void print_figures(const json& figures) {
  const auto bytes = [&](const char* key) {
    return um::to_string(Bytes{figures.at(key).get<std::uint64_t>()});
  };
  const auto time = [](const json& seconds) {
    return duration_text(um::Nanoseconds{std::llround(1e9 * seconds.get<double>())});
  };
  fmt::print("  profile          {}\n", figures.at("profile").get<std::string>());
  fmt::print("  budget           {} (smallest feasible {}, all near {})\n", bytes("budget_bytes"),
             bytes("min_budget_bytes"), bytes("resident_bytes"));
  if (figures.at("sub_steps") > 1) {
    fmt::print("  sub-batches      {} of {}\n", figures.at("sub_steps").get<std::size_t>(),
               um::count_of(figures.at("sub_batch").get<std::size_t>(), "image"));
  }
  fmt::print("  peak, verified   {}\n", bytes("peak_bytes"));
  if (const auto places = figures.find("placement"); places != figures.end()) {
    fmt::print("  arena            {}\n", describe_places(*places));
  }
  fmt::print("  step             {}, of it arithmetic {}\n", time(figures.at("makespan_seconds")),
             time(figures.at("arithmetic_seconds")));
  if (figures.contains("paleo_seconds")) {
    fmt::print("  by OOC-Paleo     {} ({})\n", time(figures.at("paleo_seconds")),
               figures.at("paleo_strategy").get<std::string>());
  }
  if (const auto noise = figures.find("noise"); noise != figures.end()) {
    fmt::print("  under noise      {} on average, {} at worst\n",
               time(noise->at("mean_makespan_seconds")), time(noise->at("worst_makespan_seconds")));
  }
  fmt::print("  no plan below    {} (moving alone {})\n",
             time(figures.at("bounds").at("mixed_turnover")),
             time(figures.at("bounds").at("offload_turnover")));
  fmt::print("  moved            {} out, {} in, {} recomputed\n", bytes("offloaded_bytes"),
             bytes("prefetched_bytes"),
             um::count_of(figures.at("recomputed_tasks").get<std::uint64_t>(), "task"));
  if (const auto far = figures.find("state_far_bytes"); far != figures.end() && *far > 0) {
    fmt::print("  state far        {} between steps\n", bytes("state_far_bytes"));
  }
  if (const auto updates = figures.find("far_updates"); updates != figures.end() && *updates > 0) {
    fmt::print("  updates far      {}\n", um::count_of(updates->get<std::size_t>(), "tensor"));
  }
  fmt::print("  planned in       {} by {}\n", time(figures.at("planning_seconds")),
             figures.at("planner").get<std::string>());
}

}  // namespace spillway::cli
