#include "prefetch/placement/interval_placement.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/placement/near_intervals.h"
#include "prefetch/placement/placed_step.h"
#include "prefetch/plan.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/swapped_toys.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// Executes a plan's conditions with random timing: at each moment one possible event happens. Runs
// follow one another. Moves of one direction are issued in order, any number at once, and end in
// any order; a move counts as ended when all earlier ones have ended, too.
class DrawnWalk {
 public:
  DrawnWalk(const Plan& plan, std::uint64_t seed)
      : plan_{plan}, random_{seed}, haste_{random_() % 4} {
    offloads_.has_ended.resize(plan.offloads.size());
    prefetches_.has_ended.resize(plan.prefetches.size());
  }

  // Lets one event happen; returns false when everything has ended, or nothing can proceed.
  bool step() {
    std::vector<Event> events;
    const Progress now = progress();
    if (is_running_) {
      events.emplace_back([this] {
        is_running_ = false;
        ++runs_;
      });
    } else if (runs_ < plan_.runs.size() && now.reaches(plan_.runs[runs_].after)) {
      events.emplace_back([this] { is_running_ = true; });
    }
    add_moves(plan_.offloads, offloads_, now, events);
    add_moves(plan_.prefetches, prefetches_, now, events);
    if (events.empty()) return false;
    events[random_() % events.size()]();
    return true;
  }

  [[nodiscard]] bool is_over() const {
    return !is_running_ && progress() == Progress{.runs = size(plan_.runs),
                                                  .offloads = size(plan_.offloads),
                                                  .prefetches = size(plan_.prefetches)};
  }
  // True while a run is in flight.
  [[nodiscard]] bool is_running() const { return is_running_; }
  [[nodiscard]] std::uint32_t run() const { return runs_; }

  // True while the near interval occupies near memory.
  [[nodiscard]] bool is_near(const NearInterval& interval) const {
    if (!interval.spans_steps) return has_begun(interval) && !has_ended(interval);
    return !interval.is_offloaded || has_begun(interval) || !has_ended(interval);
  }

 private:
  using Event = std::function<void()>;  // performs the event
  struct Moves {
    std::uint32_t begun = 0;
    std::vector<bool> has_ended;
    [[nodiscard]] std::uint32_t counted() const {
      std::uint32_t count = 0;
      while (count < begun && has_ended[count]) ++count;
      return count;
    }
  };

  template <typename Entry>
  static std::uint32_t size(const std::vector<Entry>& queue) {
    return static_cast<std::uint32_t>(queue.size());
  }

  void add_moves(const std::vector<Move>& queue, Moves& moves, const Progress& now,
                 std::vector<Event>& events) const {
    if (moves.begun < queue.size() && now.reaches(queue[moves.begun].after)) {
      // More frequent in some walks: early moves create more overlaps.
      for (std::uint64_t i = 0; i <= haste_; ++i) events.emplace_back([&moves] { ++moves.begun; });
    }
    for (std::uint32_t i = 0; i < moves.begun; ++i) {
      if (!moves.has_ended[i]) events.emplace_back([&moves, i] { moves.has_ended[i] = true; });
    }
  }

  [[nodiscard]] Progress progress() const {
    return {.runs = runs_, .offloads = offloads_.counted(), .prefetches = prefetches_.counted()};
  }
  [[nodiscard]] bool has_begun(const NearInterval& interval) const {
    if (interval.is_prefetched) return prefetches_.begun > interval.first;
    return runs_ > interval.first || (is_running_ && runs_ == interval.first);
  }
  // A block's room is free when its copy and the tasks that still read it have ended.
  [[nodiscard]] bool has_ended(const NearInterval& interval) const {
    if (!interval.is_offloaded) return runs_ > interval.last;
    return offloads_.has_ended[interval.last] &&
           runs_ >= plan_.offloads[interval.last].frees_after();
  }

  const Plan& plan_;
  std::mt19937_64 random_;
  std::uint64_t haste_;
  std::uint32_t runs_ = 0;
  bool is_running_ = false;
  Moves offloads_;
  Moves prefetches_;
};

// Pairs of near intervals, as indices.
using Pairs = std::set<std::pair<std::size_t, std::size_t>>;

bool share_addresses(const IntervalPlacement& placement, std::span<const NearInterval> intervals,
                     std::size_t i, std::size_t j) {
  return placement.offsets[i] < placement.offsets[j] + intervals[j].size &&
         placement.offsets[j] < placement.offsets[i] + intervals[i].size;
}

// Checks that the current run's operands are near, so the near intervals are complete.
void expect_operands_near(const TaskGraph& graph, const Plan& plan, const DrawnWalk& walk,
                          std::span<const NearInterval> intervals) {
  const BlockSizes block_sizes{graph, plan.page};
  for (const DataId id : operands(graph[plan.runs[walk.run()].task])) {
    if (!block_sizes.is_movable(id)) continue;
    RC_ASSERT(std::ranges::count_if(intervals, [&](const NearInterval& interval) {
                return !interval.is_workspace && interval.data == id && walk.is_near(interval);
              }) == 1);
  }
}

// Walks the plan once and adds the pairs that were near at once to `met`.
void walk_once(const TaskGraph& graph, const Plan& plan, std::span<const NearInterval> intervals,
               um::Bytes pool, Pairs& met) {
  DrawnWalk walk{plan, *rc::gen::arbitrary<std::uint64_t>()};
  while (walk.step()) {
    if (walk.is_running()) expect_operands_near(graph, plan, walk, intervals);
    std::vector<std::size_t> near;
    um::Bytes in_use;
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      if (!walk.is_near(intervals[i])) continue;
      for (const std::size_t other : near) met.emplace(other, i);
      near.push_back(i);
      in_use += intervals[i].size;
    }
    RC_ASSERT(in_use <= pool);
  }
  RC_ASSERT(walk.is_over());
}

// Finds the lowest gap for each near interval in turn, by checking all placed ones.
std::vector<um::Bytes> first_fit(std::span<const NearInterval> intervals,
                                 std::span<const IntervalSpan> spans,
                                 std::span<const std::uint32_t> order) {
  std::vector<um::Bytes> offsets(intervals.size());
  std::vector<std::uint32_t> placed;  // by offset
  for (const std::uint32_t next : order) {
    um::Bytes offset;
    for (const std::uint32_t other : placed) {
      const auto reaches = [](const Progress& a, const Progress& b) {
        return a.runs >= b.runs && a.offloads >= b.offloads;
      };
      if (reaches(spans[next].begun, spans[other].ended) ||
          reaches(spans[other].begun, spans[next].ended)) {
        continue;
      }
      if (offset + intervals[next].size <= offsets[other]) break;
      offset = std::max(offset, offsets[other] + intervals[other].size);
    }
    offsets[next] = offset;
    placed.insert(
        std::ranges::upper_bound(placed, offset, {}, [&](std::uint32_t i) { return offsets[i]; }),
        next);
  }
  return offsets;
}

RC_GTEST_PROP(IntervalPacker, FindsTheLowestGaps, ()) {
  const TaskGraph graph = random_chain(*rc::gen::inRange(1, 150));
  const Profile profile = random_profile(graph);
  Problem given = random_problem(graph, profile);
  given.whole_blocks = true;
  const auto& all = planners();
  const Plan plan = planned_with_more(*all[*rc::gen::inRange<std::size_t>(0, all.size())], given);
  if (plan.residency == Residency::kOnDemand) return;
  const std::vector<NearInterval> intervals = find_near_intervals(graph, plan);
  const std::vector<IntervalSpan> spans = find_spans(plan, intervals);
  std::vector<std::uint32_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 random{*rc::gen::arbitrary<std::uint64_t>()};
  std::ranges::shuffle(order, random);
  IntervalPacker packer{intervals, spans};
  std::vector<um::Bytes> offsets(intervals.size());
  for (const std::uint32_t i : order) offsets[i] = packer.place(i);
  RC_ASSERT(offsets == first_fit(intervals, spans, order));
}

// Checks a plan's placement: the checker accepts it, and random walks never find two near intervals
// in one place. The checker refuses to overlay any two intervals that a walk finds near at once.
void check_places(const TaskGraph& graph, const Plan& plan) {
  const std::vector<NearInterval> intervals = find_near_intervals(graph, plan);
  const um::Bytes pool = BlockSizes{graph, plan.page}.pool(plan.budget);
  const IntervalPlacement placement = place_intervals(plan, intervals, pool);
  if (const auto wrong = check_placement(graph, plan, intervals, placement)) RC_FAIL(wrong->reason);
  Pairs met;
  for (int i = 0; i < 5; ++i) walk_once(graph, plan, intervals, pool, met);
  for (const auto& [one, other] : met) {
    RC_ASSERT(!share_addresses(placement, intervals, one, other));
    IntervalPlacement mutated = placement;
    mutated.offsets[one] = placement.offsets[other];
    mutated.extent += intervals[one].size;
    RC_ASSERT(check_placement(graph, plan, intervals, mutated).has_value());
  }
}

void check_every_planner(const TaskGraph& graph) {
  const Profile profile = random_profile(graph);
  const Problem problem{.graph = graph,
                        .profile = profile,
                        .budget = random_budget(graph, kPage),
                        .page = kPage,
                        .chunk = pages(4),
                        .whole_blocks = true,
                        .may_recompute = *rc::gen::arbitrary<bool>()};
  for (const auto& planner : planners()) {
    Problem enough = problem;
    const Plan plan = planned_with_more(*planner, enough);
    RC_ASSERT(moves_whole_blocks(plan, graph));
    RC_ASSERT(reason_against(graph, plan) == "");
    check_places(graph, plan);
  }
}

RC_GTEST_PROP(PlaceIntervals, KeepsApartWhatMeetsInADagUnderAnyTiming, ()) {
  check_every_planner(random_graph());
}

RC_GTEST_PROP(PlaceIntervals, KeepsApartWhatMeetsInAChainUnderAnyTiming, ()) {
  check_every_planner(random_chain(12));
}

// Three pages hold a, then b and its workspace, then a again.
TEST(PlaceIntervals, LetsThoseShareAddressesThatNeverMeet) {
  const SwappedToy toy;
  const std::vector<NearInterval> intervals = find_near_intervals(toy.graph, toy.plan);
  const IntervalPlacement placement = place_intervals(toy.plan, intervals, pages(3));
  EXPECT_EQ(placement.extent, pages(3));
  EXPECT_FALSE(check_placement(toy.graph, toy.plan, intervals, placement).has_value());
}

// b is made while a may still be leaving: two, two and one pages.
TEST(PlaceIntervals, KeepsApartWhatMayMeet) {
  SwappedToy toy;
  toy.plan.runs[1].after.offloads = 0;
  const IntervalPlacement placement =
      place_intervals(toy.plan, find_near_intervals(toy.graph, toy.plan), pages(3));
  EXPECT_EQ(placement.extent, pages(5));
}

// Run 0 needs a and c; run 1 needs c, b and its workspace: at most four pages are in use at once.
TEST(PlaceIntervals, LetsThoseShareThatWaitByWayOfOthers) {
  const SwappedByWayOfAnother toy;
  ASSERT_TRUE(std::holds_alternative<Verified>(verify(toy.graph, toy.plan)));
  const IntervalPlacement placement =
      place_intervals(toy.plan, find_near_intervals(toy.graph, toy.plan), pages(4));
  EXPECT_EQ(placement.extent, pages(4));
}

// a returns after d, made by run 1 beside b and its workspace, has left, and thus after run 1: it
// may have the place of b, and run 1's four pages suffice.
TEST(PlaceIntervals, KnowWhatAnOffloadWaitedFor) {
  SwappedToy toy;
  const DataId d = toy.graph.add(DataBlock{.name = "d", .size = pages(1)});
  toy.graph.tasks[1].writes.push_back(d);
  toy.graph.tasks[2].reads.push_back(d);
  toy.plan.graph = fingerprint(toy.graph);
  toy.plan.budget = pages(8);  // worst_case_peak() is less precise
  toy.plan.offloads.push_back({.data = d, .size = pages(1), .after = {.runs = 2}});
  toy.plan.prefetches[0].after = {.runs = 0, .offloads = 2};
  toy.plan.prefetches.push_back({.data = d, .size = pages(1), .after = {.runs = 2, .offloads = 2}});
  toy.plan.runs[2].after = {.runs = 2, .offloads = 2, .prefetches = 2};
  ASSERT_TRUE(std::holds_alternative<Verified>(verify(toy.graph, toy.plan)));
  const IntervalPlacement placement =
      place_intervals(toy.plan, find_near_intervals(toy.graph, toy.plan), pages(4));
  EXPECT_EQ(placement.extent, pages(4));
}

TEST(PlaceIntervals, OfAnEmptyStepTakeNothing) {
  EXPECT_EQ(place_intervals({}, {}, pages(1)).extent, 0_B);
}

// A chain of 2000 layers of varying sizes, all near: 4000 activations and gradients, and a
// workspace each, in little more than the peak.
TEST(PlaceIntervals, PlacesALongStepTightly) {
  TaskGraph graph = chain(2000, pages(1));
  for (std::size_t i = 0; i < graph.data.size(); ++i) graph.data[i].size = pages(1 + i * i % 7);
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    graph.tasks[i].algorithms[0].workspace = pages(1 + i % 5);
  }
  Plan plan = plain_plan(graph, pages(1U << 20U));
  plan.budget = std::get<Verified>(verify(graph, plan)).peak;
  const std::vector<NearInterval> intervals = find_near_intervals(graph, plan);
  EXPECT_EQ(intervals.size(), 8004U);
  const IntervalPlacement placement = place_intervals(plan, intervals, plan.budget);
  EXPECT_FALSE(check_placement(graph, plan, intervals, placement).has_value());
  EXPECT_LE(100 * placement.extent, 101 * plan.budget);
}

// The near intervals are a, b, the workspace, and a again. Concurrent ones must lie apart: b and
// its workspace.
struct CheckPlacement : public ::testing::Test, public SwappedToy {
  [[nodiscard]] std::string complaint() const {
    const auto violation =
        check_placement(graph, plan, find_near_intervals(graph, plan), placement);
    return violation ? violation->reason : "";
  }
  IntervalPlacement placement{.offsets = {0_B, 0_B, pages(2), pages(1)}, .extent = pages(3)};
};

TEST_F(CheckPlacement, AcceptsSharingBetweenWhatIsNeverNearTogether) { EXPECT_EQ(complaint(), ""); }

TEST_F(CheckPlacement, RefusesAWorkspaceInARunsOperand) {
  placement.offsets[2] = pages(1);
  EXPECT_EQ(complaint(),
            "b and the workspace of make b share addresses and may be near at the same time");
}

TEST_F(CheckPlacement, RefusesTheRoomOfAnOffloadThatNobodyWaitedFor) {
  plan.runs[1].after.offloads = 0;  // a may still be leaving while b is made
  EXPECT_EQ(complaint(), "a and b share addresses and may be near at the same time");
}

TEST_F(CheckPlacement, SeesWhatIsWaitedForByWayOfOthers) {
  static_cast<SwappedToy&>(*this) = SwappedByWayOfAnother{};
  // a, c, b, the workspace; then c and a return.
  placement = {.offsets = {0_B, pages(2), 0_B, pages(2), pages(3), 0_B}, .extent = pages(4)};
  EXPECT_EQ(complaint(), "");
  plan.prefetches[0].after.offloads = 1;
  EXPECT_EQ(complaint(), "a and b share addresses and may be near at the same time");
}

// The copy of a may end before run 1, which still reads a, does: then a's room is not free yet.
TEST_F(CheckPlacement, RefusesTheRoomOfABlockThatIsStillRead) {
  graph.tasks[1].reads = {a};
  plan.budget = pages(5);
  plan.offloads[0].free_after = 2;
  EXPECT_EQ(complaint(), "a and b share addresses and may be near at the same time");
  placement = {.offsets = {0_B, pages(2), pages(4), 0_B}, .extent = pages(5)};
  EXPECT_EQ(complaint(), "");
}

// Moves of one direction begin in order, but the second need not wait for the first to end.
TEST_F(CheckPlacement, LetsMovesOfOneDirectionMeet) {
  const DataId c = graph.add(DataBlock{.name = "c", .size = pages(1)});
  graph.tasks[0].writes.push_back(c);
  graph.tasks[2].reads.push_back(c);
  plan.offloads.push_back({.data = c, .size = pages(1), .after = {.runs = 1}});
  plan.prefetches.push_back({.data = c, .size = pages(1), .after = {.runs = 2, .offloads = 2}});
  plan.runs[1].after.offloads = 2;
  plan.runs[2].after = {.runs = 2, .offloads = 2, .prefetches = 2};
  // a, c, b, the workspace; then a and c return.
  placement = {.offsets = {0_B, pages(2), 0_B, pages(2), 0_B, pages(1)}, .extent = pages(3)};
  EXPECT_EQ(complaint(), "a and c share addresses and may be near at the same time");
  placement.offsets[5] = pages(2);
  EXPECT_EQ(complaint(), "");
}

TEST_F(CheckPlacement, RefusesWhatDoesNotLieInTheExtentInPages) {
  placement.extent = pages(2);
  EXPECT_EQ(complaint(), "the workspace of make b reaches beyond the placement's extent");
  placement.extent = pages(4);
  placement.offsets[2] = pages(2) + 64_B;
  EXPECT_EQ(complaint(), "the workspace of make b does not lie at a multiple of 4 KiB");
  placement.offsets.pop_back();
  EXPECT_EQ(complaint(), "the placement has 3 offsets for 4 near intervals");
}

}  // namespace
}  // namespace spillway::prefetch
