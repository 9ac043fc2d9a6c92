#include "src/sweep/plan_file_strategy.h"

#include <filesystem>
#include <utility>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "src/plan/plans.h"

namespace spillway {

PlanFileStrategy::PlanFileStrategy(std::string path)
    : path_{std::move(path)}, name_{std::filesystem::path{path_}.filename().string()} {}

std::variant<prefetch::Plan, prefetch::Infeasible> PlanFileStrategy::plan(
    const prefetch::Problem& problem) const {
  PlanOfFile file{.plan = prefetch::read_plan(prefetch::JsonFile{path_}, problem.graph),
                  .name = path_};
  expect_usable(file, problem.graph, problem.page,
                problem.whole_blocks ? MemoryMode::kCopy : MemoryMode::kManaged);
  if (file.plan.budget > problem.budget) {
    return prefetch::Infeasible{.task = prefetch::infeasible(problem).task,
                                .smallest_budget = file.plan.budget};
  }
  return std::move(file.plan);
}

}  // namespace spillway
