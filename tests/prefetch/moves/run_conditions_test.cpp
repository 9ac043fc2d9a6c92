#include "prefetch/moves/run_conditions.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_chain.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using um::Bytes;

Bytes size_of_first(const std::vector<Move>& moves, std::size_t count) {
  Bytes sum;
  for (std::size_t i = 0; i < count; ++i) sum += moves[i].size;
  return sum;
}

// Each number of prefetches that may have started by run p is looked at, one after another.
std::uint32_t offloads_for(const Plan& plan, Position p, Bytes demand, Bytes pool) {
  std::uint32_t needed = 0;
  for (std::size_t k = plan.runs[p].after.prefetches; k <= plan.prefetches.size(); ++k) {
    std::uint32_t away = p > 0 ? plan.runs[p - 1].after.offloads : 0;
    if (k > 0 && plan.prefetches[k - 1].after.runs > p) break;
    if (k > 0) away = std::max(away, plan.prefetches[k - 1].after.offloads);
    const std::uint32_t sure = away;
    const Bytes taken = demand + size_of_first(plan.prefetches, k);
    while (taken > pool + size_of_first(plan.offloads, away)) ++away;
    if (away > sure || k == plan.runs[p].after.prefetches) needed = std::max(needed, away);
  }
  return needed;
}

void expect_fewest_conditions(const TaskGraph& graph) {
  const Profile profile = random_profile(graph);
  Problem given = random_problem(graph, profile);
  Plan plan = planned_with_more(find_planner("fractional"), given);
  const BlockSizes block_sizes{graph, given.page};
  const std::vector<Bytes> live =
      demand(graph, block_sizes, plan.runs, find_lives(graph, plan.runs));
  std::vector<std::uint32_t> landed;
  for (const TaskRun& run : plan.runs) landed.push_back(run.after.prefetches);
  const Bytes pool = block_sizes.pool(given.budget);
  add_run_conditions(live, pool, {}, landed, plan);
  for (Position p = 0; p < plan.runs.size(); ++p) {
    RC_ASSERT(plan.runs[p].after.offloads == offloads_for(plan, p, live[p], pool));
  }
}

RC_GTEST_PROP(RunConditions, AreTheFewestThatLetADagFitWhateverHasStarted, ()) {
  expect_fewest_conditions(random_graph({.has_offloadable_weights = false}));
}

RC_GTEST_PROP(RunConditions, AreTheFewestThatLetAChainFitWhateverHasStarted, ()) {
  expect_fewest_conditions(random_chain(24));
}

}  // namespace
}  // namespace spillway::prefetch
