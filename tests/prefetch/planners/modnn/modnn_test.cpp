#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "prefetch/planners/modnn/virtual_memory.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

Plan modnn_plan(const Problem& problem) {
  Plan plan = planned("modnn", problem);
  EXPECT_EQ(reason_against(problem.graph, plan), "");
  return plan;
}

// x of two pages is made and used; then `big` needs all three pages of the pool; then four small
// tasks of one page run; then x is used again.
TaskGraph with_detour() {
  return toy_graph("x:2 a:3 s3:1 s4:1 s5:1 s6:1",
                   "x = make(); touch(x); a = big(); s3 = s3(); s4 = s4(); s5 = s5(); s6 = s6(); "
                   "use(x)");
}

// Tasks of 10 ns; x takes 20 ns each way.
//   Strm_C  make 0-10, touch -20, (x leaves), big 40-50, s3 -60, s4 -70, s5 -80, s6 -90, use -100
//   Strm_D  x out 20-40                                            x in 70-90
// EST(use) = 90. Eq. 4 before s4: 60 + 10 + 20 > 90 does not hold; before s5: 70 + 10 + 20 > 90.
TEST(Modnn, PrefetchesWhenWaitingOneTaskLongerWouldDelay) {
  const TaskGraph graph = with_detour();
  const Profile profile = flat_profile(graph, 10ns);
  const Plan plan = modnn_plan(problem(graph, profile, pages(3)));
  ASSERT_EQ(names(graph, plan.offloads), "x");
  ASSERT_EQ(plan.prefetches.size(), 1U);
  EXPECT_EQ(plan.prefetches[0].after.runs, 5U);
  const Timeline timeline = simulate(plan, profile);
  EXPECT_EQ(timeline.runs[2].begin, 40ns);
  EXPECT_EQ(timeline.prefetches[0], (Interval{70ns, 90ns}));
  EXPECT_EQ(timeline.makespan(), 100ns);
}

// The small tasks take 30 ns: big 40-50, s3 -80, s4 -110, s5 -140, s6 -170. Before s5:
// 110 + 30 + 20 > 170 does not hold; before s6: 140 + 30 + 20 > 170.
TEST(Modnn, PrefetchesLaterWhereTasksAreLonger) {
  const TaskGraph graph = with_detour();
  Profile profile = flat_profile(graph, 10ns);
  for (std::size_t t = 3; t <= 6; ++t) profile.durations[t] = {30ns};
  const Plan plan = modnn_plan(problem(graph, profile, pages(3)));
  ASSERT_EQ(plan.prefetches.size(), 1U);
  EXPECT_EQ(plan.prefetches[0].after.runs, 6U);
  EXPECT_EQ(simulate(plan, profile).makespan(), 180ns);
}

// As in the first test, but s5 needs all of memory: before it Eq. 4 holds and there is not enough
// room. x is prefetched beside s6, 80-100, and `use` waits for it.
TEST(Modnn, DoesNotPrefetchWhereAnOperandLeavesNoRoom) {
  TaskGraph graph = with_detour();
  graph.data[4].size = pages(3);  // s5's
  const Profile profile = flat_profile(graph, 10ns);
  const Plan plan = modnn_plan(problem(graph, profile, pages(3)));
  ASSERT_EQ(plan.prefetches.size(), 1U);
  EXPECT_EQ(plan.prefetches[0].after.runs, 6U);
  EXPECT_EQ(simulate(plan, profile).makespan(), 110ns);
}

// z and x are made; z dies at `touch`; `conv` makes y in z's place, so x has the two free pages
// beside it. A workspace of three pages evicts x: 20 ns from the end of touch on, when conv could
// start. After conv a rest of 100 ns hides the prefetch of x.
TaskGraph with_workspace() {
  TaskGraph graph = toy_graph(
      "z:1 x:2 y:1", "z = first(); x = make(); touch(z, x); y = conv(); rest(); use(x, y)");
  graph.tasks[3].algorithms = {{.name = "direct"}, {.name = "fast", .workspace = pages(3)}};
  return graph;
}

// conv takes 100 ns, or `fast`; then `rest` follows.
Plan plan_with_workspace(um::Nanoseconds fast, um::Nanoseconds rest) {
  const TaskGraph graph = with_workspace();
  Profile profile = flat_profile(graph, 10ns);
  profile.durations[3] = {100ns, fast};
  profile.durations[4] = {rest};
  return modnn_plan(problem(graph, profile, pages(5)));
}

// Eq. 5: 100 - 79 - 20 - 0 > 0.
TEST(Modnn, TakesAnAlgorithmThatSavesMoreThanItsOffloadsDelay) {
  const Plan plan = plan_with_workspace(79ns, 100ns);
  EXPECT_EQ(plan.runs[3].algorithm, 1U);
  EXPECT_EQ(plan.offloads.size(), 1U);
}

// Eq. 5: 100 - 81 - 20 - 0 < 0.
TEST(Modnn, LeavesAnAlgorithmThatSavesLessThanItsOffloadsDelay) {
  const Plan plan = plan_with_workspace(81ns, 100ns);
  EXPECT_EQ(plan.runs[3].algorithm, 0U);
  EXPECT_TRUE(plan.offloads.empty());
}

// With a rest of 5 ns x returns 15 ns late. Eq. 5: 100 - 64 - 20 - 15 > 0, 100 - 66 - 20 - 15 < 0.
TEST(Modnn, CountsTheWayBackOfWhatLeavesForAWorkspace) {
  EXPECT_EQ(plan_with_workspace(64ns, 5ns).runs[3].algorithm, 1U);
  EXPECT_EQ(plan_with_workspace(66ns, 5ns).runs[3].algorithm, 0U);
}

// x is away when conv runs. conv's y and workspace fill the three pages. x, which would fit beside
// conv without workspace, is prefetched after it: 20 ns late.
TaskGraph with_displaced_prefetch() {
  TaskGraph graph =
      toy_graph("x:2 a:3 y:1", "x = make(); touch(x); a = big(); y = conv(); use(x, y)");
  graph.tasks[3].algorithms = {{.name = "direct"}, {.name = "fast", .workspace = pages(2)}};
  return graph;
}

// conv takes 100 ns, or `fast`. Returns its algorithm, the run before which x is prefetched, and
// the makespan.
std::tuple<std::uint32_t, std::uint32_t, um::Nanoseconds> displaced_prefetch(um::Nanoseconds fast) {
  const TaskGraph graph = with_displaced_prefetch();
  Profile profile = flat_profile(graph, 10ns);
  profile.durations[3] = {100ns, fast};
  const Plan plan = modnn_plan(problem(graph, profile, pages(3)));
  return {plan.runs[3].algorithm, plan.prefetches.at(0).after.runs,
          simulate(plan, profile).makespan()};
}

// Eq. 5: 100 - 60 - 0 - 20 > 0. make 0-10, touch -20, x out -40, big -50, conv -110, x in -130.
TEST(Modnn, TakesAnAlgorithmThatSavesMoreThanItDelaysAPrefetch) {
  EXPECT_EQ(displaced_prefetch(60ns), (std::tuple{1U, 4U, 140ns}));
}

// Eq. 5: 100 - 85 - 0 - 20 < 0. make 0-10, touch -20, x out -40, big -50, conv and x in -150.
TEST(Modnn, LeavesAnAlgorithmThatSavesLessThanItDelaysAPrefetch) {
  EXPECT_EQ(displaced_prefetch(85ns), (std::tuple{0U, 3U, 160ns}));
}

// [a][b][c][ ]: b is dead when `join` needs a, c and two pages for d. Four pages suffice, but the
// two free ones are apart, and a and c must stay: everything leaves, and join's inputs return.
//   Strm_C  ma 0-10, mb -20, mc -30, (defragmentation), join 60-70
//   Strm_D  a out 10-20, c out 30-40, a in 40-50, c in 50-60
TEST(Modnn, DefragmentsWhereFreePagesAreApart) {
  const TaskGraph graph =
      toy_graph("a:1 b:1 c:1 d:2", "a = ma(); b = mb(); c = mc(b); d = join(a, c)");
  const Profile profile = flat_profile(graph, 10ns);
  const Plan plan = modnn_plan(problem(graph, profile, pages(4)));
  EXPECT_EQ(names(graph, plan.offloads), "a c");
  EXPECT_EQ(names(graph, plan.prefetches), "a c");
  EXPECT_EQ(simulate(plan, profile).makespan(), 70ns);
}

// x (2) is away when s makes y (2) beside w (1). Eq. 4 holds before s: 80 + 10 + 20 > 100. x would
// fit in w's place, but then big2 (2 and 1) would need 5 of 4 pages. x thus stays away until `use`,
// and w never moves.
TEST(Modnn, DoesNotPrefetchWhatDefragmentationWouldThrowOut) {
  const TaskGraph graph =
      toy_graph("x:2 p:2 w:1 a:4 y:2 b:2 c:1",
                "x = make(); touch(x); a = big1(); p = mp(); w = mw(p); tw(w); y = s(); "
                "b, c = big2(); use(x); usew(w)");
  const Profile profile = flat_profile(graph, 10ns);
  const Plan plan = modnn_plan(problem(graph, profile, pages(4)));
  EXPECT_EQ(names(graph, plan.offloads), "x");
  ASSERT_EQ(plan.prefetches.size(), 1U);
  EXPECT_EQ(plan.prefetches[0].after.runs, 8U);
}

// Neither u nor g would delay c, and g is used later. But g was not used since it was made.
TEST(Modnn, OffloadsNothingThatWasNotUsedSinceItWasMade) {
  const TaskGraph graph =
      toy_graph("u:2 g:2 c:2", "u = mu(); tu(u); g = mg(); rest(); c = mc(); use u(u); use g(g)");
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = modnn_plan(problem(graph, profile, pages(4)));
  EXPECT_EQ(names(graph, plan.offloads), "u");
}

// A block that is away twice without a change is transferred out once.
TEST(Modnn, JustFreesABlockWithAValidFarCopy) {
  const TaskGraph graph =
      toy_graph("x:2 a:3", "x = make(); a = big1(); use1(x); a = big2(); use2(x)");
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = modnn_plan(problem(graph, profile, pages(3)));
  ASSERT_EQ(plan.offloads.size(), 2U);
  EXPECT_FALSE(plan.offloads[0].is_clean);
  EXPECT_TRUE(plan.offloads[1].is_clean);
}

// If the link can copy while tasks read, the copy of y0 starts after load has written it, beside
// its reader f1.
TEST(Modnn, OffloadsBesideTheLastReaderWhereTheLinkCan) {
  const TaskGraph graph = chain(4, pages(2));
  Profile profile = flat_profile(graph, 100ns);
  const auto first = [&] {
    const Plan plan = modnn_plan(problem(graph, profile, pages(8)));
    EXPECT_EQ(graph[plan.offloads.at(0).data].name, "y0");
    return plan.offloads.at(0);
  };
  EXPECT_EQ(first().after.runs, 2U);
  profile.link.copies_while_read = true;
  EXPECT_EQ(first().after.runs, 1U);
  EXPECT_EQ(first().frees_after(), 2U);
}

// Weights stay near, even if a plan may move them: two pages beside the chain's smallest eight.
TEST(Modnn, LeavesOffloadableStateNear) {
  TaskGraph graph = chain(4, pages(2));
  const DataId w = graph.add(DataBlock{.name = "w", .size = pages(2)});
  make_offloadable(graph, w);
  graph.tasks[2].reads.push_back(w);
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = modnn_plan(problem(graph, profile, pages(10)));
  EXPECT_EQ(std::ranges::count(plan.offloads, w, &Move::data), 0);
  const Problem smaller = problem(graph, profile, pages(9));
  EXPECT_EQ(refused("modnn", smaller).smallest_budget, pages(10));
}

// Returns offsets and sizes in pages, and the block or -1.
std::vector<std::vector<int>> pages_of(const SegmentList& list) {
  std::vector<std::vector<int>> result;
  for (const Segment& segment : list.segments()) {
    result.push_back({static_cast<int>(segment.offset / kPage),
                      static_cast<int>(segment.size / kPage),
                      segment.block ? static_cast<int>(*segment.block) : -1});
  }
  return result;
}

TEST(SegmentList, ListsBlocksAndFreeRoomInAddressOrder) {
  SegmentList list{pages(10), kPage};
  EXPECT_EQ(pages_of(list), (std::vector<std::vector<int>>{{0, 10, -1}}));
  EXPECT_TRUE(list.allocate(DataId{7}, pages(3)));
  EXPECT_TRUE(list.allocate(DataId{8}, pages(2)));
  EXPECT_TRUE(list.allocate(DataId{9}, pages(4)));
  list.free(DataId{8});
  EXPECT_EQ(pages_of(list),
            (std::vector<std::vector<int>>{{0, 3, 7}, {3, 2, -1}, {5, 4, 9}, {9, 1, -1}}));
  EXPECT_TRUE(list.contains(DataId{9}));
  EXPECT_FALSE(list.contains(DataId{8}));
}

TEST(SegmentList, GivesTheSmallestRoomThatFitsAndNoneAcrossABlock) {
  SegmentList list{pages(10), kPage};
  EXPECT_TRUE(list.allocate(DataId{1}, pages(3)));
  EXPECT_TRUE(list.allocate(DataId{2}, pages(5)));
  list.free(DataId{1});  // three free pages, block 2, two free pages
  EXPECT_FALSE(list.allocate(DataId{3}, pages(4)));
  EXPECT_TRUE(list.allocate(DataId{4}, pages(2)));
  EXPECT_EQ(pages_of(list), (std::vector<std::vector<int>>{{0, 3, -1}, {3, 5, 2}, {8, 2, 4}}));
}

// Blocks x and y of two pages, a pool of four, six live pages from run 1 on. y leaves for run 1.
// Before run 2, x leaves so that y can return for run 3. Run 2 fits with x near as long as y has
// not started to return, so it waits for one offload; y itself waits for both.
TEST(MoveLog, LetsARunWaitOnlyForTheRoomThatItNeeds) {
  MoveLog log;
  log.offload(DataId{1}, pages(2), 0, 0, false);
  log.offload(DataId{0}, pages(2), 1, 1, false);
  log.load(DataId{1}, pages(2), 2, 3);
  Plan plan;
  plan.runs.resize(4);
  log.add_to(plan, std::vector{pages(4), pages(6), pages(6), pages(6)}, pages(4));
  EXPECT_EQ(plan.runs[0].after, (Progress{.runs = 0}));
  EXPECT_EQ(plan.runs[1].after, (Progress{.runs = 1, .offloads = 1}));
  EXPECT_EQ(plan.runs[2].after, (Progress{.runs = 2, .offloads = 1}));
  EXPECT_EQ(plan.runs[3].after, (Progress{.runs = 3, .offloads = 2, .prefetches = 1}));
  ASSERT_EQ(plan.prefetches.size(), 1U);
  EXPECT_EQ(plan.prefetches[0].after, (Progress{.runs = 2, .offloads = 2}));
}

TEST(MoveLog, ForgetsACancelledLoad) {
  MoveLog log;
  log.offload(DataId{0}, pages(2), 0, 0, false);
  log.cancel(log.load(DataId{0}, pages(2), 1, 3));
  log.load(DataId{0}, pages(2), 3, 3);
  Plan plan;
  plan.runs.resize(4);
  log.add_to(plan, std::vector{pages(2), pages(4), pages(4), pages(2)}, pages(2));
  ASSERT_EQ(plan.prefetches.size(), 1U);
  EXPECT_EQ(plan.prefetches[0].after.runs, 3U);
}

// The copy may start while tasks still read the block: run 0 wrote it, run 2 reads it last.
TEST(MoveLog, FreesABlockOnlyAfterItsLastReader) {
  MoveLog log;
  log.offload(DataId{0}, pages(2), 0, 2, false);
  Plan plan;
  plan.runs.resize(4);
  log.add_to(plan, std::vector{pages(2), pages(2), pages(2), pages(4)}, pages(2));
  ASSERT_EQ(plan.offloads.size(), 1U);
  EXPECT_EQ(plan.offloads[0].after.runs, 1U);
  EXPECT_EQ(plan.offloads[0].frees_after(), 3U);
  EXPECT_EQ(plan.runs[3].after.offloads, 1U);
}

// Returns adjacent segments with sizes in pages; block i is DataId{i}, 0 means free.
std::vector<Segment> layout(const std::vector<std::pair<std::uint32_t, std::uint64_t>>& parts) {
  std::vector<Segment> segments;
  um::Bytes offset;
  for (const auto& [block, size] : parts) {
    segments.push_back({.offset = offset, .size = pages(size), .block = std::nullopt});
    if (block != 0) segments.back().block = DataId{block};
    offset += pages(size);
  }
  return segments;
}

FindDeparture departures(std::map<std::uint32_t, Departure> known) {
  return [known = std::move(known)](DataId id) -> std::optional<Departure> {
    const auto found = known.find(static_cast<std::uint32_t>(id));
    if (found == known.end()) return std::nullopt;
    return found->second;
  };
}

// moDNN Fig. 4: block 4 must stay; an allocation of 4. Blocks 1 and 2 have size 2, block 3 has 1.
// From block 1, (1)(2) suffices; from 2 or 3, block 4 ends the attempt. From 5, (5)(6) suffices;
// from 6, memory ends.
const std::vector<Segment> kFigure4 = layout({{1, 2}, {2, 2}, {3, 1}, {4, 3}, {5, 3}, {6, 1}});

std::map<std::uint32_t, Departure> figure4_departures() {
  std::map<std::uint32_t, Departure> all;
  for (const std::uint32_t id : {1U, 2U, 3U, 5U, 6U}) {
    all[id] = {.ready = 0ns, .duration = 20ns, .next = 9};
  }
  return all;
}

// Now is 100; Strm_D is free at 70. (1)(2) take 2 * 20: done at 110, delay 10. (5)(6) with 6 clean:
// done at 90, no delay.
TEST(OffloadScheme, IsTheOneOfFigure4ThatDelaysLeast) {
  auto all = figure4_departures();
  all[6].duration = 0ns;
  const auto scheme =
      find_scheme(kFigure4, pages(4), {.now = 100ns, .link_free = 70ns}, departures(all));
  ASSERT_TRUE(scheme);
  EXPECT_EQ(scheme->blocks, (std::vector<DataId>{DataId{5}, DataId{6}}));
  EXPECT_EQ(scheme->delay, 0ns);
  EXPECT_EQ(scheme->offset, pages(8));
  EXPECT_EQ(scheme->size, pages(4));
}

// The same, but 5 was used up to 100: its transfer cannot start before, and delays by 20.
TEST(OffloadScheme, StartsNoTransferBeforeTheBlockIsReady) {
  auto all = figure4_departures();
  all[5].ready = 100ns;
  all[6].duration = 0ns;
  const auto scheme =
      find_scheme(kFigure4, pages(4), {.now = 100ns, .link_free = 70ns}, departures(all));
  ASSERT_TRUE(scheme);
  EXPECT_EQ(scheme->blocks, (std::vector<DataId>{DataId{1}, DataId{2}}));
  EXPECT_EQ(scheme->delay, 10ns);
}

TEST(OffloadScheme, PrefersWhatIsUsedLastAmongEqualDelays) {
  auto all = figure4_departures();
  all[1].next = 5;  // (1)(2) are used from 5 on, (5)(6) from 9 on
  const auto scheme = find_scheme(kFigure4, pages(4), {.now = 200ns}, departures(all));
  ASSERT_TRUE(scheme);
  EXPECT_EQ(scheme->blocks.front(), DataId{5});
}

TEST(OffloadScheme, CountsFreeSegmentsBetweenAndAfterBlocks) {
  const auto segments = layout({{1, 1}, {0, 1}, {2, 1}, {0, 1}});
  auto all = figure4_departures();
  const auto scheme = find_scheme(segments, pages(4), {.now = 100ns}, departures(all));
  ASSERT_TRUE(scheme);
  EXPECT_EQ(scheme->size, pages(4));
  EXPECT_EQ(scheme->blocks.size(), 2U);
}

// Five pages would be free or could be, but not one after the other.
TEST(OffloadScheme, IsNotFoundAcrossABlockThatMustStay) {
  const auto segments = layout({{1, 2}, {4, 1}, {5, 3}});
  EXPECT_FALSE(find_scheme(segments, pages(4), {}, departures(figure4_departures())));
}

}  // namespace
}  // namespace spillway::prefetch
