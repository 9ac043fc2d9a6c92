// The copy mode, with fixed places and with compaction.
#include "prefetch/runtime/copy_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/prefetch/runtime/copy_steps.h"
#include "tests/sleeping_threads.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// a is written, leaves, and returns.
class SwappedBlock : public ::testing::Test {
 protected:
  SwappedBlock() {
    const DataId a{0};
    plan = plain_plan(graph, pages(1));
    plan.offloads = {{.data = a, .size = pages(1), .after = {.runs = 1}}};
    plan.prefetches = {{.data = a, .size = pages(1), .after = {.runs = 2, .offloads = 1}}};
    plan.runs[1].after = {1, 1, 0};
    plan.runs[2].after = {2, 1, 1};
  }
  TaskGraph graph = toy_graph("a:1 b:1", "a = make a(); b = make b(); a = use a(a)");
  Plan plan;
};

TEST_F(SwappedBlock, FreesItsRoomOnlyWhenTheCopyHasEnded) {
  ManualStep step{graph, plan};
  step.run(0);
  step.copies.out.wait_until_issued(1);
  EXPECT_EQ(step.stage.ledger.in_use(), pages(1));
  step.copies.out.finish_next();
  EXPECT_EQ(step.stage.ledger.in_use(), 0_B);
  step.memory.begin_run(1);
  EXPECT_EQ(step.stage.ledger.in_use(), pages(1));
}

TEST_F(SwappedBlock, AFailedCopyComesOutOfBeginRun) {
  ManualStep step{graph, plan};
  step.run(0);
  step.copies.out.wait_until_issued(1);
  step.copies.out.finish_next(std::make_exception_ptr(um::Error{"no space left on the far file"}));
  EXPECT_THROW(step.memory.begin_run(1), um::Error);
}

// a has two pages, as has the budget. b takes one of them, and the test takes the other. When a
// should return, one page is missing: the step fails with a message, and the process survives.
TEST_F(SwappedBlock, APrefetchBeyondTheBudgetFailsTheStep) {
  graph.data[0].size = plan.offloads[0].size = plan.prefetches[0].size = plan.budget = pages(2);
  ManualStep step{graph, plan};
  step.run(0);
  step.copies.out.wait_and_finish_next();
  step.memory.begin_run(1);
  step.stage.ledger.charge(pages(1));
  step.memory.end_run(1);
  EXPECT_THROW(step.memory.begin_run(2), um::OutOfMemory);
}

TEST_F(SwappedBlock, RefusesAPlanThatMovesPartsOfBlocks) {
  graph.data[0].size = pages(2);
  Stage stage{graph, plan};
  std::vector<std::byte> near(pages(4).count());
  ManualCopies copies;
  EXPECT_THROW((CopyMemory{stage.layout, stage.pinned, near, copies, stage.ledger}),
               um::ContractError);
}

// Freeing a block with a valid far copy takes no time, but must not overtake the copy issued before
// it: a, the second offload, is still in flight when b, the third, is freed. The issued copy of c,
// the fourth, shows that b was freed before.
TEST(CopyMemory, ACleanOffloadDoesNotCountForTheCopyBeforeIt) {
  const TaskGraph graph = toy_graph("a:1 b:1 c:1",
                                    "b = make b(); wait(); use b(b); a, c = make a c(); "
                                    "wait again(); use all(a, b, c)");
  const DataId a{0};
  const DataId b{1};
  const DataId c{2};
  Plan plan = plain_plan(graph, pages(3));
  const auto move = [](DataId id, Progress after, bool is_clean = false) {
    return Move{.data = id, .size = pages(1), .is_clean = is_clean, .after = after};
  };
  plan.offloads = {move(b, {1, 0, 0}), move(a, {4, 1, 1}), move(b, {4, 1, 1}, true),
                   move(c, {4, 1, 1})};
  plan.prefetches = {move(b, {2, 1, 0}), move(a, {5, 4, 1}), move(b, {5, 4, 1}),
                     move(c, {5, 4, 1})};
  plan.runs[2].after = {2, 1, 1};
  plan.runs[4].after = {4, 2, 1};
  plan.runs[5].after = {5, 4, 4};
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  ManualStep step{graph, plan};
  step.run(0);
  step.copies.out.wait_and_finish_next();
  step.run(1);
  step.copies.in.wait_and_finish_next();
  step.run(2);
  step.run(3);
  step.copies.out.wait_until_issued(3);  // the first copy of b, and those of a and c
  EXPECT_EQ(step.memory.moves().offloads[2].end, 0ns);
  step.copies.out.finish_next();
  step.run(4);  // counts on the room of a
  EXPECT_GT(step.memory.moves().offloads[2].end, 0ns);
  step.copies.out.finish_next();
  for (int i = 0; i < 3; ++i) step.copies.in.wait_and_finish_next();
}

TEST(FixedPlaces, LeaveRoomInOnePieceForWhatComesLater) {
  // Three pages. a, b and c fill them; a and c die, and d needs two adjacent pages. b must not lie
  // in the middle, as it would by first fit.
  const TaskGraph graph =
      toy_graph("a:1 b:1 c:1 d:2", "a = make a(); b = make b(); c = use a(a); d = use b(b)");
  const Plan plan = plain_plan(graph, pages(3));
  expect_copied(graph, plan, true, 0);
}

TEST(FixedPlaces, LeaveRoomInOnePieceForWhatComesBack) {
  // Four pages. x (two pages) leaves after the first run; a, b, c, d fill the arena; a and c die,
  // and x returns to their two pages: a and c must be adjacent.
  const TaskGraph graph =
      toy_graph("x:2 a:1 b:1 c:1 d:1",
                "x = make x(); a = make a(); b = make b(); c = make c(); d = make d(); "
                "b = use a c(a, c, b); x = use all(x, d, b)");
  const DataId x{0};
  Plan plan = plain_plan(graph, pages(4));
  plan.offloads = {{.data = x, .size = pages(2), .after = {.runs = 1}}};
  plan.prefetches = {{.data = x, .size = pages(2), .after = {.runs = 6, .offloads = 1}}};
  for (Position p = 1; p < 7; ++p) plan.runs[p].after.offloads = 1;
  plan.runs[6].after.prefetches = 1;
  expect_copied(graph, plan, true, 0);
}

// A block that is away in between, and a workspace of two pages beside it: each is at its
// placement, regardless of the previous content.
TEST(FixedPlaces, AreWhereThePlacementSays) {
  TaskGraph graph = toy_graph("a:2 b:3", "a = make a(); b = make b(); use a(a)");
  graph.tasks[2].algorithms = {{.workspace = pages(2)}};
  const DataId a{0};
  const DataId b{1};
  Plan plan = plain_plan(graph, pages(4));
  plan.offloads = {{.data = a, .size = pages(2), .after = {.runs = 1}}};
  plan.prefetches = {{.data = a, .size = pages(2), .after = {.runs = 2, .offloads = 1}}};
  plan.runs[1].after.offloads = 1;
  plan.runs[2].after = {2, 1, 1};
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  ManualStep step{graph, plan};
  const PlacedStep& placed = step.memory.placed();
  ASSERT_TRUE(placed.fits);
  ASSERT_EQ(placed.intervals.size(), 4U);  // a, b, the workspace, a again
  const auto place = [&](std::size_t interval) {
    return std::as_writable_bytes(std::span{step.near}).data() +
           placed.placement.offsets[interval].count();
  };
  step.memory.begin_run(0);
  EXPECT_EQ(step.memory.address(a), place(0));
  step.memory.end_run(0);
  step.copies.out.wait_and_finish_next();
  step.memory.begin_run(1);
  EXPECT_EQ(step.memory.address(b), place(1));
  EXPECT_EQ(step.stage.ledger.in_use(), pages(3));
  step.memory.end_run(1);
  step.copies.in.wait_and_finish_next();
  step.memory.begin_run(2);
  EXPECT_EQ(step.memory.address(a), place(3));
  EXPECT_EQ(step.memory.workspace(), place(2));
  EXPECT_EQ(step.stage.ledger.in_use(), pages(4));
  step.memory.end_run(2);
  EXPECT_EQ(step.stage.ledger.in_use(), 0_B);
}

TEST(CopyMemory, CompactsTheArenaWhenNoPieceIsLargeEnough) {
  TaskGraph graph;
  add_unplaceable_runs(graph, 5);
  const Plan plan = plain_plan(graph, pages(5));
  expect_copied(graph, plan, false, 2 * kSteps);
}

// The block that fills the first run also fills the last: it leaves, and returns to four pages that
// are not adjacent.
TEST(CopyMemory, CompactsForAPrefetchThatFindsNoPiece) {
  TaskGraph graph;
  add_unplaceable_runs(graph, 5);
  const DataId x = graph.tasks[0].writes[1];
  graph.tasks[4].writes = {};
  graph.tasks[4].reads.push_back(x);
  Plan plan = plain_plan(graph, pages(5));
  plan.offloads = {{.data = x, .size = pages(4), .after = {.runs = 1}}};
  plan.prefetches = {{.data = x, .size = pages(4), .after = {.runs = 4, .offloads = 1}}};
  for (Position p = 1; p < 5; ++p) plan.runs[p].after.offloads = 1;
  plan.runs[4].after.prefetches = 1;
  expect_copied(graph, plan, false, 2 * kSteps);
}

// Six pages. "make" writes x and p, which leave. x returns between a and k; then a, c and e die:
// three pages are free, none adjacent, and d needs two. At that moment x is freed without a
// transfer, and p, of two pages, returns. When d has compacted the arena, p must not take d's room
// first.
TEST(CopyMemory, ARunHasTheRoomThatItsCompactionMade) {
  TaskGraph graph = toy_graph(
      "x:1 p:2 a:1 c:1 k:1 e:1 l:1 d:2",
      "x, p = make(); a = make a(); c = use x(x); k = make k(); e = make e(); "
      "l = make l(); use a c e(a, c, e); d = make d(); use p(p, d, k, l); use x again(x)");
  const DataId x{0};
  const DataId p{1};
  add_unplaceable_runs(graph, 6);
  Plan plan = plain_plan(graph, pages(6));
  plan.offloads = {{.data = x, .size = pages(1), .after = {.runs = 1}},
                   {.data = p, .size = pages(2), .after = {.runs = 1}},
                   {.data = x, .size = pages(1), .is_clean = true, .after = {7, 2, 1}}};
  plan.prefetches = {{.data = x, .size = pages(1), .after = {2, 2, 0}},
                     {.data = p, .size = pages(2), .after = {7, 3, 1}},
                     {.data = x, .size = pages(1), .after = {9, 3, 2}}};
  for (Position r = 1; r < 15; ++r) plan.runs[r].after.offloads = r < 8 ? 2 : 3;
  for (Position r = 2; r < 15; ++r) {
    plan.runs[r].after.prefetches = r < 8 ? 1 : std::min(r - 6, 3U);
  }
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  const ToyResult wanted = run_plainly(graph, kSteps);
  ASSERT_FALSE(execute_copy(graph, plan).has_fixed_places);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kTries = 20;  // which take a second each, or half of one
#else
  constexpr int kTries = 200;
#endif
  for (int i = 0; i < kTries; ++i) ASSERT_EQ(execute_copy(graph, plan).result, wanted);
}

// z, u and v lie below the pages in which run 4 does not find a piece. Its compaction waits for run
// 3, and for the copies of z and u. Meanwhile neither the offload of v, which run 3 permits, nor
// the prefetch of z may start.
TEST(CopyMemory, CompactsOnlyWhenNothingIsUnderWayAndStartsNothingMeanwhile) {
  TaskGraph graph = toy_graph("z:1 u:1 v:1", "z, u, v = make z()");
  add_unplaceable_runs(graph, 5);
  add_tasks(graph, "use z(z, u, v)");
  Plan plan = plain_plan(graph, pages(8));
  plan.offloads = {{.data = DataId{0}, .size = pages(1), .after = {.runs = 1}},
                   {.data = DataId{1}, .size = pages(1), .after = {.runs = 1}},
                   {.data = DataId{2}, .size = pages(1), .after = {.runs = 4}}};
  plan.prefetches = {{.data = DataId{0}, .size = pages(1), .after = {1, 1, 0}},
                     {.data = DataId{1}, .size = pages(1), .after = {6, 3, 0}},
                     {.data = DataId{2}, .size = pages(1), .after = {6, 3, 0}}};
  plan.runs[6].after = {6, 3, 3};
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  ManualStep step{graph, plan};
  ASSERT_FALSE(step.memory.placed().fits);
  step.run(0);
  step.copies.out.wait_until_issued(2);
  step.run(1);
  step.run(2);
  step.memory.begin_run(3);
  step.memory.after_launch(3);
  std::atomic<bool> has_begun = false;
  std::thread beginning{[&] {
    step.memory.begin_run(4);
    has_begun = true;
  }};
  const auto expect_nothing_new = [&] {
    while (!test::all_others_sleep()) std::this_thread::yield();
    EXPECT_FALSE(has_begun);
    EXPECT_EQ(step.copies.out.issued().size(), 2U);
    EXPECT_TRUE(step.copies.in.issued().empty());
  };
  expect_nothing_new();
  step.memory.end_run(3);
  expect_nothing_new();
  step.copies.out.finish_next();
  expect_nothing_new();
  step.copies.out.finish_next();
  beginning.join();
  EXPECT_EQ(step.memory.compactions(), 1U);
  step.copies.out.wait_and_finish_next();
  step.copies.in.wait_and_finish_next();
}

// Four pages. p (two pages) leaves; a, x, b and y fill the arena; a and b die. p may return, but
// the two free pages are not adjacent until x has left: then it finds room without compaction.
TEST(CopyMemory, DoesNotCompactOnceARetriedPrefetchHasFoundRoom) {
  TaskGraph graph = toy_graph("p:2 a:1 x:1 b:1 y:1",
                              "p = make p(); a = make a(); x = make x(); b = make b(); "
                              "y = make y(); use a b(a, b); use p(p); use x y(x, y)");
  const DataId p{0};
  const DataId x{2};
  const DataId y{4};
  add_unplaceable_runs(graph, 4);
  Plan plan = plain_plan(graph, pages(4));
  plan.offloads = {{.data = p, .size = pages(2), .after = {.runs = 1}},
                   {.data = x, .size = pages(1), .after = {6, 1, 0}},
                   {.data = y, .size = pages(1), .after = {6, 1, 0}}};
  plan.prefetches = {{.data = p, .size = pages(2), .after = {6, 1, 0}},
                     {.data = x, .size = pages(1), .after = {7, 3, 1}},
                     {.data = y, .size = pages(1), .after = {7, 3, 1}}};
  for (Position r = 1; r < 8; ++r) plan.runs[r].after.offloads = 1;
  plan.runs[6].after.prefetches = 1;
  for (Position r = 7; r < 13; ++r) plan.runs[r].after = {r, 3, 3};
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  ManualStep step{graph, plan};
  ASSERT_FALSE(step.memory.placed().fits);
  step.run(0);
  step.copies.out.wait_and_finish_next();
  for (Position r = 1; r < 6; ++r) step.run(r);
  step.copies.out.wait_until_issued(3);  // between x and y, p was tried without room
  step.copies.out.finish_next();
  step.copies.in.wait_until_issued(1);
  step.copies.out.finish_next();
  step.copies.in.finish_next();
  step.run(6);
  EXPECT_EQ(step.memory.compactions(), 0U);
  for (int i = 0; i < 2; ++i) step.copies.in.wait_and_finish_next();
}

// a, d and e fill three of five pages; b and then c take the page that a has left. When a should
// return, c is dead, but the run that makes c is only launched. A later run may reuse its page, a
// prefetch may not. The offloads of d and e show that the walker has tried.
TEST(CopyMemory, APrefetchWaitsForTheRunsThatMayTouchItsRoom) {
  TaskGraph graph = toy_graph("a:1 d:1 e:1 b:1 c:1",
                              "a, d, e = make a(); b = make b(); c = make c(); use a(a, d, e)");
  const DataId a{0};
  const DataId d{1};
  const DataId e{2};
  add_unplaceable_runs(graph, 5);
  Plan plan = plain_plan(graph, pages(5));
  plan.offloads = {{.data = a, .size = pages(1), .after = {.runs = 1}},
                   {.data = d, .size = pages(1), .after = {.runs = 2}},
                   {.data = e, .size = pages(1), .after = {.runs = 2, .offloads = 2}}};
  plan.prefetches = {{.data = a, .size = pages(1), .after = {.runs = 2, .offloads = 1}},
                     {.data = d, .size = pages(1), .after = {.runs = 3, .offloads = 2}},
                     {.data = e, .size = pages(1), .after = {.runs = 3, .offloads = 3}}};
  for (Position r = 1; r < plan.runs.size(); ++r) plan.runs[r].after.offloads = r < 3 ? 1 : 3;
  for (Position r = 3; r < plan.runs.size(); ++r) plan.runs[r].after.prefetches = 3;
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  ManualStep step{graph, plan};
  step.run(0);
  step.copies.out.wait_and_finish_next();
  ASSERT_FALSE(step.memory.placed().fits);
  for (const Position position : {1U, 2U}) {
    step.memory.begin_run(position);
    step.memory.after_launch(position);
  }
  EXPECT_EQ(step.stage.ledger.in_use(), pages(2));  // d and e
  step.memory.end_run(1);
  step.copies.out.wait_and_finish_next();
  step.copies.out.wait_until_issued(3);
  EXPECT_TRUE(step.copies.in.issued().empty());
  step.memory.end_run(2);
  step.copies.in.wait_until_issued(1);
  step.copies.in.finish_next();
  step.copies.out.finish_next();
  step.copies.in.wait_and_finish_next();  // d
  step.copies.in.wait_and_finish_next();  // e
}

}  // namespace
}  // namespace spillway::prefetch
