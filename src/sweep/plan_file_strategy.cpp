#include "src/sweep/plan_file_strategy.h"

#include <filesystem>
#include <utility>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/verify/verify.h"
#include "um/error.h"

namespace spillway {

PlanFileStrategy::PlanFileStrategy(std::string path)
    : path_{std::move(path)}, name_{std::filesystem::path{path_}.filename().string()} {}

std::variant<prefetch::Plan, prefetch::Infeasible> PlanFileStrategy::plan(
    const prefetch::Problem& problem) const {
  prefetch::Plan plan = prefetch::read_plan(prefetch::JsonFile{path_}, problem.graph);
  if (plan.page != problem.page) {
    throw um::Error{path_ + " moves pages of " + um::to_string(plan.page) +
                    ", but this network's are " + um::to_string(problem.page)};
  }
  if (problem.whole_blocks && (plan.residency == prefetch::Residency::kOnDemand ||
                               !moves_whole_blocks(plan, problem.graph))) {
    throw um::Error{path_ +
                    " moves parts of blocks, which explicit copies cannot do; compare it with "
                    "--memory managed"};
  }
  const auto verdict = prefetch::verify(problem.graph, plan);
  if (const auto* violation = std::get_if<prefetch::Violation>(&verdict)) {
    throw um::Error{path_ + " must not run: " + violation->reason};
  }
  if (plan.budget > problem.budget) {
    return prefetch::Infeasible{.task = prefetch::infeasible(problem).task,
                                .smallest_budget = plan.budget};
  }
  return plan;
}

}  // namespace spillway
