#include "prefetch/simulate/paging_model.h"

#include <gtest/gtest.h>

#include "prefetch/files/machine.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// Tasks take 100 ns, a page 10 ns each way, a fault 1 ns more.
class PagedStepTest : public ::testing::Test {
 protected:
  PagedStep page_in(std::uint64_t pages_near) {
    profile = flat_profile(graph, 100ns);
    profile.link.faults.time = 1ns;
    plan = planned("on-demand", problem(graph, profile, pages(pages_near)));
    return page_on_demand(graph, plan, profile);
  }
  TaskGraph graph;
  Profile profile;
  Plan plan;
};

TEST_F(PagedStepTest, NeverStallsWhereAllFits) {
  graph = chain(3, pages(2));
  const PagedStep step = page_in(100);
  EXPECT_EQ(step.faults, 0U);
  EXPECT_EQ(step.timeline.makespan(), 800ns);  // load, f1 to f3, loss, b3 to b1
}

// Two blocks of three pages, written alternately, have separate addresses since the last task reads
// both. Four pages are near. Six pages pass cyclically through four places, so first in first out
// never keeps a page that is needed next. 'a' faults 3 times, 'b' 3, and the readers of a and b 6
// in total: 12 faults.
TEST_F(PagedStepTest, FaultsWhereFirstInFirstOutKeepsNothing) {
  graph = toy_graph("a:3 b:3", "a = write a(); b = write b(); read a(a); read b(b)");
  const PagedStep step = page_in(4);
  EXPECT_EQ(step.faults, 12U);
  EXPECT_EQ(step.fetched, pages(12));
  // Each page is written once and read once per step: it is clean every second time that it leaves.
  EXPECT_EQ(step.written_back, pages(6));
  // 12 faults and fetches of 11 ns, 6 write-backs of 10 ns, 4 tasks.
  EXPECT_EQ(step.timeline.makespan(), 12 * 11ns + 6 * 10ns + 400ns);
  // "write a" faults 3 times; the evicted pages are those of b, clean since they were read last.
  EXPECT_EQ(step.timeline.runs[0], (Interval{33ns, 133ns}));
}

// The page that came first is evicted first, even if it is used all the time: x, read by every
// task, comes before a and b and leaves before them.
TEST_F(PagedStepTest, EvictsInTheOrderOfMigrationNotOfUse) {
  graph = toy_graph("x:1 a:1 b:1", "x = x(); a = a(x); b = b(x); last(b, x, a)");
  // Two pages near, three addresses. By age, from a steady start {b, x}: suppose the last task ends
  // with x and a. x: hit. a: hit. b: x hit; b comes and the older x leaves. last: b hit; x comes, a
  // leaves; a comes, b leaves: {x, a} again. Least recently used would have kept x.
  Profile times = flat_profile(graph, 100ns);
  times.link.faults.time = 1ns;
  Plan paged = plain_plan_with_pool(graph, pages(2));
  paged.residency = Residency::kOnDemand;
  const PagedStep step = page_on_demand(graph, paged, times);
  EXPECT_EQ(step.faults, 3U);
  EXPECT_EQ(step.timeline.runs[0], (Interval{0ns, 100ns}));
  EXPECT_EQ(step.timeline.runs[1], (Interval{100ns, 200ns}));
}

// x lives until b is written, a and b until the end; two of the three pages are near. The steady
// state is a and b. "x" evicts a, clean since it was read; "a" evicts b, and "b" evicts a, which is
// less recently used than x. "last" evicts x and fetches a, the only faulting page that is not
// overwritten.
TEST_F(PagedStepTest, FollowsADeviceThatEvictsByUseAndKnowsWhatIsOverwritten) {
  graph = toy_graph("x:1 a:1 b:1", "x = x(); a = a(x); b = b(x); last(a, b)");
  EXPECT_EQ(page_in(2).faults, 3U) << "by migration: 'a' finds a near";
  EXPECT_EQ(page_in(2).fetched, pages(3));

  profile.link.faults.evict_by_use = true;
  profile.link.faults.spare_overwritten = true;
  const PagedStep step = page_on_demand(graph, plan, profile);
  EXPECT_EQ(step.faults, 4U);
  EXPECT_EQ(step.fetched, pages(1));
  EXPECT_EQ(step.written_back, pages(3));
  EXPECT_EQ(step.timeline.makespan(), 4 * 1ns + 4 * 10ns + 400ns);
}

// Three pages are near; the steady state is x, y and b, used in this order. "a" and "b" overwrite
// the pages that the last task reads. a is then far; b, which is least recently used, comes after
// it: x leaves.
TEST_F(PagedStepTest, KeepsWhatTheRunningTaskUses) {
  graph = toy_graph("a:1 b:1 x:1 y:1",
                    "a = a(); b = b(); x = x(); y = y(); a and b(a, b); x and y(x, y)");
  page_in(3);
  profile.link.faults.evict_by_use = true;
  const PagedStep step = page_on_demand(graph, plan, profile);
  EXPECT_EQ(step.timeline.runs[4].begin - step.timeline.runs[3].end, 21ns) << "a comes, x leaves";
}

// A block that a task updates in place is not overwritten.
TEST_F(PagedStepTest, BringsWhatIsReadAndWritten) {
  graph = toy_graph("a:1 b:1", "a = a(); b = b(); a = update a(a); read b(b)");
  page_in(1);
  profile.link.faults.spare_overwritten = true;
  const PagedStep step = page_on_demand(graph, plan, profile);
  EXPECT_EQ(step.faults, 4U);
  EXPECT_EQ(step.fetched, pages(2));
}

TEST_F(PagedStepTest, FaultsForWorkspacesToo) {
  graph = toy_graph("a:2", "a = write(); read(a)");
  graph.tasks[1].algorithms = {{"only", pages(2)}};
  EXPECT_EQ(page_in(4).faults, 0U);
  graph.tasks[0].algorithms = {{"only", pages(2)}};  // at a separate address
  EXPECT_EQ(page_in(4).faults, 0U);
}

// The parts of each run are those of the step.
TEST_F(PagedStepTest, TellsTheFaultsOfEachRun) {
  graph = toy_graph("a:3 b:3", "a = write a(); b = write b(); read a(a); read b(b)");
  const PagedStep step = page_in(4);
  ASSERT_EQ(step.timeline.faults.size(), step.timeline.runs.size());
  RunFaults sum;
  um::Nanoseconds end{0};
  for (std::size_t i = 0; i < step.timeline.runs.size(); ++i) {
    const RunFaults& each = step.timeline.faults[i];
    EXPECT_NEAR(um::to_double(step.timeline.runs[i].begin - end), um::to_double(each.time), 1);
    end = step.timeline.runs[i].end;
    sum.faults += each.faults;
    sum.fetched += each.fetched;
    sum.written_back += each.written_back;
  }
  EXPECT_GT(sum.faults, 0U);
  EXPECT_EQ(sum.faults, step.faults);
  EXPECT_EQ(sum.fetched, step.fetched);
  EXPECT_EQ(sum.written_back, step.written_back);
}

TEST_F(PagedStepTest, IsWhatSimulatePredictsForPlansWithoutHints) {
  graph = chain(4, pages(3));
  const PagedStep step = page_in(12);
  EXPECT_GT(step.faults, 0U);
  EXPECT_EQ(simulate(graph, plan, profile).runs, step.timeline.runs);
  const SimulateOptions noise{.noise = 0.1, .seed = 3};
  EXPECT_NE(simulate(graph, plan, profile, noise).runs, step.timeline.runs);
}

TEST_F(PagedStepTest, IsNotPredictedOfMorePagesThanCanBeFollowed) {
  graph = chain(3, um::Bytes{1ULL << 42U});
  EXPECT_THROW(page_in(1ULL << 34U), um::Error);
}

TEST(MachineFaults, AreAGpusUnlessTheLinkSaysOtherwise) {
  const um::Faults gpu = find_machine("a100").link.faults;
  EXPECT_EQ(gpu.time, 20us);
  EXPECT_FALSE(gpu.spare_overwritten);
  EXPECT_FALSE(gpu.evict_by_use);
  const um::Faults host = find_machine("host").link.faults;
  EXPECT_EQ(host.time, 5200ns);
  EXPECT_TRUE(host.spare_overwritten);
  EXPECT_TRUE(host.evict_by_use);
}

}  // namespace
}  // namespace spillway::prefetch
