// `joint` compared with the exact optimum of whole blocks, which it may beat by moving parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "prefetch/bounds/bounds.h"
#include "prefetch/files/json.h"
#include "prefetch/files/trace.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/drawn_step.h"
#include "tests/prefetch/exact_solver.h"
#include "tests/prefetch/planned.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// Makespans divided by optima.
struct Ratios {
  void add(um::Nanoseconds makespan, um::Nanoseconds optimum) {
    all.push_back(static_cast<double>(makespan.count()) / static_cast<double>(optimum.count()));
  }
  [[nodiscard]] double mean() const {
    double sum = 0;
    for (const double each : all) sum += each;
    return sum / static_cast<double>(all.size());
  }
  [[nodiscard]] double worst() const { return *std::ranges::max_element(all); }
  [[nodiscard]] std::string text() const {
    const auto late = std::ranges::count_if(all, [](double each) { return each > 1.03; });
    return std::to_string(all.size()) + " steps: mean " + std::to_string(mean()) + ", worst " +
           std::to_string(worst()) + ", above 1.03: " + std::to_string(late);
  }
  std::vector<double> all;
};

um::Nanoseconds makespan_of_joint(const Problem& given) {
  const Plan plan = planned("joint", given);
  EXPECT_EQ(reason_against(given.graph, plan), "");
  return simulate(plan, given.profile).makespan();
}

// Ratios of joint's plans and of the proved bound.
struct DrawnRatios {
  Ratios joint;
  Ratios bound;
};

DrawnRatios drawn_ratios(bool is_chain, bool whole_blocks) {
  constexpr std::uint64_t kSteps = 250;
  DrawnRatios ratios;
  for (std::uint64_t seed = 1; seed <= kSteps; ++seed) {
    const DrawnStep step{seed, is_chain};
    const Problem given = step.problem(whole_blocks);
    const auto optimum = ExactSolver{given}.solve();
    if (!optimum || *optimum == um::Nanoseconds{0}) {
      ADD_FAILURE() << "no optimum of step " << seed;
      continue;
    }
    ratios.joint.add(makespan_of_joint(given), *optimum);
    ratios.bound.add(lower_bounds(given).offload_transition, *optimum);
    EXPECT_LE(ratios.bound.all.back(), 1) << seed;
    EXPECT_GE(ratios.joint.all.back(), whole_blocks ? 1 : 0) << seed;
  }
  return ratios;
}

// Parts of blocks take less time than whole ones; the bound allows 0.937 of it.
TEST(JointBesideTheOptimum, OfDrawnChains) {
  const auto [joint, bound] = drawn_ratios(true, false);
  EXPECT_LE(joint.mean(), bound.mean() + 0.01) << joint.text() << "; bound: " << bound.text();
  EXPECT_LE(joint.worst(), 1) << joint.text();
}

// The bound allows 0.919.
TEST(JointBesideTheOptimum, OfDrawnDags) {
  const auto [joint, bound] = drawn_ratios(false, false);
  EXPECT_LE(joint.mean(), bound.mean() + 0.02) << joint.text() << "; bound: " << bound.text();
  EXPECT_LE(joint.worst(), 1.031) << joint.text();
}

TEST(JointBesideTheOptimum, OfDrawnChainsInWholeBlocks) {
  const Ratios joint = drawn_ratios(true, true).joint;
  EXPECT_LE(joint.mean(), 1.001) << joint.text();
  EXPECT_LE(joint.worst(), 1.07) << joint.text();
}

// A plan's offloads free their room in the order in which they begin. The optimum's may not: it may
// copy out a block that is still read for long, and another one meanwhile.
TEST(JointBesideTheOptimum, OfDrawnDagsInWholeBlocks) {
  const Ratios joint = drawn_ratios(false, true).joint;
  EXPECT_LE(joint.mean(), 1.004) << joint.text();
  EXPECT_LE(joint.worst(), 1.15) << joint.text();
}

LinkProfile link_of(const JsonView& link) {
  return {.offload = um::Bandwidth{link.at("offload_bytes_per_second").number()},
          .prefetch = um::Bandwidth{link.at("prefetch_bytes_per_second").number()},
          .latency = um::Nanoseconds{static_cast<std::int64_t>(link.at("latency_ns").integer())},
          .is_duplex = link.at("duplex").boolean(),
          .copies_while_read = link.at("copies_while_read").boolean()};
}

// 53 recorded steps of 8 to 14 tasks, solved by another program (A* over event-driven schedules).
TEST(JointBesideTheOptimum, OfRecordedSteps) {
  const JsonFile file{SPILLWAY_STEPS "/optima.json"};
  Ratios ratios;
  for (const nlohmann::json& each : file.value()["instances"]) {
    const JsonView view{each, "optima.json"};
    const Trace trace = read_trace(JsonFile{each["trace"].dump(), "trace"});
    const Profile profile = trace_profile(trace, link_of(view.at("link")));
    const Problem given{.graph = trace.graph,
                        .profile = profile,
                        .budget = um::Bytes{view.at("budget_bytes").integer()},
                        .page = choose_page(trace.graph),
                        .chunk = chunk_for(profile.link),
                        .may_recompute = true};
    const um::Nanoseconds optimum{
        static_cast<std::int64_t>(view.at("optimum_whole_blocks_ns").integer())};
    ratios.add(makespan_of_joint(given), optimum);
  }
  EXPECT_EQ(ratios.all.size(), 53);
  EXPECT_LE(ratios.mean(), 0.92) << ratios.text();
  std::ranges::sort(ratios.all);
  EXPECT_LE(ratios.all[51], 1.0001) << ratios.text();
  // Its optimum copies a block out early, and frees the room of a later one first (see above).
  EXPECT_LE(ratios.all[52], 1.12) << ratios.text();
}

}  // namespace
}  // namespace spillway::prefetch
