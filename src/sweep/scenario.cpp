#include "src/sweep/scenario.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/planner.h"
#include "src/plan/plans.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway {

using um::Bytes;

prefetch::Machine with_faster_link(prefetch::Machine machine, double factor) {
  const auto scaled = [&](um::Bandwidth rate) {
    return um::Bandwidth{rate.bytes_per_second() * factor};
  };
  machine.link.offload = scaled(machine.link.offload);
  machine.link.prefetch = scaled(machine.link.prefetch);
  return machine;
}

Scenario make_scenario(std::string net, std::size_t batch, const ComparedStep& step,
                       const prefetch::Machine& machine, double link_factor) {
  const prefetch::Machine linked = with_faster_link(machine, link_factor);
  prefetch::NearNeed need = step.planned->need();
  need.resident = step.near->need().resident;
  return {.net = std::move(net),
          .batch = batch,
          .machine = machine.name,
          .precision = machine.precision,
          .link_factor = link_factor,
          .workload = step.planned,
          .profile = prefetch::model_profile(step.planned->training().graph, linked),
          .need = need,
          .fastest =
              prefetch::fastest_step(prefetch::model_profile(step.near->training().graph, linked))};
}

std::vector<Bytes> linear_budgets(const prefetch::NearNeed& need, std::size_t count) {
  um::expects(count >= 2, "budgets from the smallest to the resident need");
  const std::uint64_t range = um::saturating_difference(need.resident, need.smallest).count();
  const std::uint64_t last = std::max<std::uint64_t>(1, count - 1);
  std::vector<Bytes> budgets;
  for (std::size_t p = 0; p < count; ++p) {
    // In two parts, so that no product is larger than 64 bits.
    const std::uint64_t way = range / last * p + range % last * p / last;
    budgets.push_back(need.smallest + Bytes{way});
  }
  return budgets;
}

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
