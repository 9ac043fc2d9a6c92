#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "prefetch/bounds/bounds.h"
#include "prefetch/planners/chain/dynprog.h"
#include "tests/prefetch/exact_solver.h"
#include "tests/prefetch/random_chain.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using um::Bytes;

// A random chain as the paper has it: one forward and one backward task for each layer, the last
// backward task being the loss's, too; a layer saves nothing but its output.
TaskGraph paper_chain() {
  TaskGraph graph = random_chain(5, false);
  std::erase_if(graph.tasks, [](const Task& task) { return task.name == "loss"; });
  for (Task& task : graph.tasks) {
    std::erase_if(task.reads, [&](DataId id) { return graph[id].name == "loss"; });
  }
  return graph;
}

Profile half_duplex_profile(const TaskGraph& graph) {
  Profile profile = random_profile(graph);
  profile.link.latency = um::Nanoseconds{0};
  profile.link.is_duplex = false;
  profile.link.copies_while_read = true;
  return profile;
}

// Communications that may be interrupted are a relaxation of the problem that the exact solver
// solves, and a restriction of the one that the bound is for.
RC_GTEST_PROP(BestChainOffload, IsBetweenTheBoundAndTheOptimumOfWholeTransfers, ()) {
  const TaskGraph graph = paper_chain();
  const Profile profile = half_duplex_profile(graph);
  const BlockSizes block_sizes{graph, kPage};
  const Problem given{
      .graph = graph, .profile = profile, .budget = random_budget(graph), .page = kPage};
  const std::vector<TaskRun> runs = runs_in_order(graph);
  const Chain chain = linearise(graph, profile, block_sizes, runs, 100);
  RC_ASSERT(chain.stages.size() == graph.tasks.size() / 2 + 1);
  const auto best = best_chain_offload(chain, block_sizes.pool(given.budget), profile.link,
                                       {.entries = 1 << 16, .grid_cells = 1 << 20});
  const auto optimum = ExactSolver{given}.solve();
  RC_ASSERT(best.has_value() == optimum.has_value());
  if (!best) return;
  const double makespan =
      static_cast<double>(compute_time(profile, runs).count()) + 1e9 * best->idle_seconds;
  RC_ASSERT(makespan <= static_cast<double>(optimum->count()) + 1);
  RC_ASSERT(makespan >= static_cast<double>(lower_bounds(given).offload.count()) - 1);
}

// Coarse grids and few entries lose time, not soundness: what is chosen is worth no less idle time
// than the best.
RC_GTEST_PROP(BestChainOffload, IsNoBetterWhenItRounds, ()) {
  const TaskGraph graph = random_chain(12);
  const Profile profile = half_duplex_profile(graph);
  const BlockSizes block_sizes{graph, kPage};
  const NearNeed need = near_need(graph, block_sizes);
  const Bytes memory = block_sizes.pool(Bytes{(need.smallest + need.resident).count() / 2});
  const Chain chain = linearise(graph, profile, block_sizes, runs_in_order(graph), 100);
  const auto exact =
      best_chain_offload(chain, memory, profile.link, {.entries = 1 << 16, .grid_cells = 1 << 20});
  const auto rounded =
      best_chain_offload(chain, memory, profile.link, {.entries = 8, .grid_cells = 16});
  if (rounded) {
    RC_ASSERT(exact.has_value());
    RC_ASSERT(exact->idle_seconds <= rounded->idle_seconds + 1e-12);
  }
}

// Four stages that save 4, 1, 2 and 1 bytes (x_1 ... x_4); F 1 s, B 1 s, one byte a second, no
// gradients. F_3 and B_3 need all 8 bytes and have 7.
// x_2 offloaded: written by F_1, sent while F_2 runs, in time for F_3. B_2 reads it, and during B_3
// there is no room for it: 1 s of waiting between the two.
// x_1 offloaded: sent from 1 s to 5 s, back at 9 s at the earliest, when B_1, which reads it, could
// have run at 6 s: 3 s. x_3 and x_4 are read by B_3.
TEST(BestChainOffload, PrefersTheActivationThatFitsTheLink) {
  Chain chain;
  for (const std::uint64_t saved : {4U, 1U, 2U, 1U}) {
    chain.stages.push_back({.forward_time = std::chrono::seconds{1},
                            .backward_time = std::chrono::seconds{1},
                            .output = Bytes{saved},
                            .saved = Bytes{saved},
                            .kept = Bytes{saved}});
  }
  const LinkProfile link{.offload = um::Bandwidth{1}, .prefetch = um::Bandwidth{1}};
  const auto best = best_chain_offload(chain, Bytes{7}, link);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->offloaded, (std::vector<bool>{false, false, true, false}));
  EXPECT_DOUBLE_EQ(best->idle_seconds, 1);
  EXPECT_FALSE(best_chain_offload(chain, Bytes{2}, link));
  const auto all_near = best_chain_offload(chain, Bytes{8}, link);
  ASSERT_TRUE(all_near);
  EXPECT_EQ(all_near->idle_seconds, 0);
  EXPECT_EQ(all_near->offloaded, std::vector<bool>(4, false));
}

}  // namespace
}  // namespace spillway::prefetch
