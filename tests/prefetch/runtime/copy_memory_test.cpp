#include "prefetch/runtime/copy_memory.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "prefetch/verify.h"
#include "tests/prefetch/runtime/manual_moves.h"
#include "tests/prefetch/runtime/step_modes.h"
#include "tests/prefetch/toy.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// Copies that end when the test says so, without copying anything.
class ManualCopies final : public um::Copies {
 public:
  void offload(std::span<const std::byte> /*near*/, um::Bytes /*far*/,
               um::Completion done) override {
    out.issue(0, std::move(done));
  }
  void prefetch(um::Bytes /*far*/, um::Range /*near*/, um::Completion done) override {
    in.issue(0, std::move(done));
  }
  ManualMoves out;
  ManualMoves in;
};

DataId add_block(TaskGraph& graph, const char* name, std::uint64_t count) {
  return graph.add(DataBlock{.name = name, .size = pages(count)});
}

Plan plain_plan(const TaskGraph& graph, um::Bytes budget) {
  Plan plan{.graph = fingerprint(graph), .budget = budget, .page = kPage};
  plan.runs = runs_in_order(graph);
  for (Position p = 0; p < plan.runs.size(); ++p) plan.runs[p].after.runs = p;
  return plan;
}

// One task for each block of `ids`, which writes it.
void add_makers(TaskGraph& graph, std::initializer_list<DataId> ids) {
  for (const DataId id : ids) {
    graph.add(Task{.name = "make " + graph[id].name, .writes = {id}});
  }
}

void expect_verified(const TaskGraph& graph, const Plan& plan) {
  const auto verdict = verify(graph, plan);
  ASSERT_TRUE(std::holds_alternative<Verified>(verdict)) << std::get<Violation>(verdict).reason;
}

TEST(CopyMemory, CompactsTheArenaWhenNoPieceIsLargeEnough) {
  // Three pages. a, b and c fill them in this order; a and c die, b stays in the middle; d needs
  // two pages: they are there, but not in one piece.
  TaskGraph graph;
  const DataId a = add_block(graph, "a", 1);
  const DataId b = add_block(graph, "b", 1);
  const DataId c = add_block(graph, "c", 1);
  const DataId d = add_block(graph, "d", 2);
  add_makers(graph, {a, b});
  graph.add(Task{.name = "use a", .reads = {a}, .writes = {c}});
  graph.add(Task{.name = "use b", .reads = {b}, .writes = {d}});
  const Plan plan = plain_plan(graph, pages(3));
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  const Executed executed = execute_copy(graph, plan);
  EXPECT_EQ(executed.compactions, kSteps);
  EXPECT_EQ(executed.result, run_plainly(graph, kSteps));
  EXPECT_EQ(executed.peak, pages(3));
}

TEST(CopyMemory, CompactsForAPrefetchThatFindsNoPiece) {
  // Four pages. x (two pages) leaves after the first run; a, b, c, d fill the arena; a and c die,
  // so that x has two pages to come back to, but not in one piece.
  TaskGraph graph;
  const DataId x = add_block(graph, "x", 2);
  const DataId a = add_block(graph, "a", 1);
  const DataId b = add_block(graph, "b", 1);
  const DataId c = add_block(graph, "c", 1);
  const DataId d = add_block(graph, "d", 1);
  graph.add(Task{.name = "make x", .writes = {x}});
  add_makers(graph, {a, b, c, d});
  graph.add(Task{.name = "use a, c", .reads = {a, c}, .writes = {b}});
  graph.add(Task{.name = "use all", .reads = {x, d}, .writes = {x}});
  graph.tasks[5].reads.push_back(b);
  graph.tasks[6].reads.push_back(b);
  Plan plan = plain_plan(graph, pages(4));
  plan.offloads = {{.data = x, .size = pages(2), .after = {.runs = 1}}};
  plan.prefetches = {{.data = x, .size = pages(2), .after = {.runs = 6, .offloads = 1}}};
  for (Position p = 1; p < 7; ++p) plan.runs[p].after.offloads = 1;
  plan.runs[6].after.prefetches = 1;
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  const Executed executed = execute_copy(graph, plan);
  EXPECT_EQ(executed.compactions, kSteps);
  EXPECT_EQ(executed.result, run_plainly(graph, kSteps));
}

// a is written, leaves, and comes back.
class SwappedBlock : public ::testing::Test {
 protected:
  SwappedBlock() {
    const DataId a = add_block(graph, "a", 1);
    const DataId b = add_block(graph, "b", 1);
    graph.add(Task{.name = "make a", .writes = {a}});
    graph.add(Task{.name = "make b", .writes = {b}});
    graph.add(Task{.name = "use a", .reads = {a}, .writes = {a}});
    plan = plain_plan(graph, pages(1));
    plan.offloads = {{.data = a, .size = pages(1), .after = {.runs = 1}}};
    plan.prefetches = {{.data = a, .size = pages(1), .after = {.runs = 2, .offloads = 1}}};
    plan.runs[1].after = {1, 1, 0};
    plan.runs[2].after = {2, 1, 1};
  }
  TaskGraph graph;
  Plan plan;
  std::vector<std::uint64_t> near = std::vector<std::uint64_t>(kPage.count() / 8 * 4);
  um::Range near_bytes = std::as_writable_bytes(std::span{near});
};

// A step whose copies end when the test says so.
struct ManualStep {
  ManualStep(const TaskGraph& graph, const Plan& plan)
      : stage{graph, plan}, near(plan.budget.count() / 8) {
    memory.begin_step();
  }
  void run(Position position) {
    memory.begin_run(position);
    memory.end_run(position);
  }
  Stage stage;
  std::vector<std::uint64_t> near;
  ManualCopies copies;
  CopyMemory memory{stage.layout, stage.always_near, std::as_writable_bytes(std::span{near}),
                    copies, stage.ledger};
};

TEST_F(SwappedBlock, FreesItsRoomOnlyWhenTheCopyHasEnded) {
  Stage stage{graph, plan};
  ManualCopies copies;
  CopyMemory memory{stage.layout, stage.always_near, near_bytes, copies, stage.ledger};
  memory.begin_step();
  memory.begin_run(0);
  memory.end_run(0);
  copies.out.wait_until_issued(1);
  EXPECT_EQ(stage.ledger.in_use(), pages(1));
  copies.out.finish_next();
  EXPECT_EQ(stage.ledger.in_use(), 0_B);
  memory.begin_run(1);
  EXPECT_EQ(stage.ledger.in_use(), pages(1));
}

TEST_F(SwappedBlock, AFailedCopyComesOutOfBeginRun) {
  Stage stage{graph, plan};
  ManualCopies copies;
  CopyMemory memory{stage.layout, stage.always_near, near_bytes, copies, stage.ledger};
  memory.begin_step();
  memory.begin_run(0);
  memory.end_run(0);
  copies.out.wait_until_issued(1);
  copies.out.finish_next(std::make_exception_ptr(um::Error{"no space left on the far file"}));
  EXPECT_THROW(memory.begin_run(1), um::Error);
}

// a has two pages and so has the budget; b takes one of them and somebody else the other. When a is
// to come back, one is taken: that ends the step with a sentence, not the process.
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

// a, d and e fill three of five pages; b and then c take the page that a has left. When a is to
// come back, c is dead, but the run that makes it is only launched: a later run might have its
// page, a copy may not. The offloads of d and e tell that the walker has tried.
TEST(CopyMemory, APrefetchWaitsForTheRunsThatMayTouchItsRoom) {
  TaskGraph graph;
  const DataId a = add_block(graph, "a", 1);
  const DataId d = add_block(graph, "d", 1);
  const DataId e = add_block(graph, "e", 1);
  graph.add(Task{.name = "make a", .writes = {a, d, e}});
  add_makers(graph, {add_block(graph, "b", 1), add_block(graph, "c", 1)});
  graph.add(Task{.name = "use a", .reads = {a, d, e}});
  Plan plan = plain_plan(graph, pages(5));
  plan.offloads = {{.data = a, .size = pages(1), .after = {.runs = 1}},
                   {.data = d, .size = pages(1), .after = {.runs = 2}},
                   {.data = e, .size = pages(1), .after = {.runs = 2, .offloads = 2}}};
  plan.prefetches = {{.data = a, .size = pages(1), .after = {.runs = 2, .offloads = 1}}};
  plan.runs[1].after.offloads = 1;
  ManualStep step{graph, plan};
  step.run(0);
  step.copies.out.wait_and_finish_next();
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
}

TEST_F(SwappedBlock, RefusesAPlanThatMovesPartsOfBlocks) {
  graph.data[0].size = pages(2);
  Stage stage{graph, plan};
  ManualCopies copies;
  EXPECT_THROW((CopyMemory{stage.layout, stage.always_near, near_bytes, copies, stage.ledger}),
               um::ContractError);
}

// Freeing a block whose far copy is still valid takes no time, but it must not overtake the copy
// that was issued before it: a, the second offload, is still under way when b, the third, is freed.
// That the copy of c, the fourth, has been issued shows that b was freed before.
TEST(CopyMemory, ACleanOffloadDoesNotCountForTheCopyBeforeIt) {
  TaskGraph graph;
  const DataId a = add_block(graph, "a", 1);
  const DataId b = add_block(graph, "b", 1);
  const DataId c = add_block(graph, "c", 1);
  graph.add(Task{.name = "make b", .writes = {b}});
  graph.add(Task{.name = "wait"});
  graph.add(Task{.name = "use b", .reads = {b}});
  graph.add(Task{.name = "make a, c", .writes = {a, c}});
  graph.add(Task{.name = "wait again"});
  graph.add(Task{.name = "use all", .reads = {a, b, c}});
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

// Six pages. "make" writes x and p, which leave. x comes back between a and k, then a, c and e die:
// three pages are free, none beside another, and d needs two of them. At that moment x is freed,
// which takes no time, and p, of two pages, comes back: when d has made the arena one piece, p must
// not cut d's share from it before d has it.
TEST(CopyMemory, ARunHasTheRoomThatItsCompactionMade) {
  TaskGraph graph;
  const DataId x = add_block(graph, "x", 1);
  const DataId p = add_block(graph, "p", 2);
  const DataId a = add_block(graph, "a", 1);
  const DataId c = add_block(graph, "c", 1);
  const DataId k = add_block(graph, "k", 1);
  const DataId e = add_block(graph, "e", 1);
  const DataId l = add_block(graph, "l", 1);
  const DataId d = add_block(graph, "d", 2);
  graph.add(Task{.name = "make", .writes = {x, p}});
  graph.add(Task{.name = "make a", .writes = {a}});
  graph.add(Task{.name = "use x", .reads = {x}, .writes = {c}});
  add_makers(graph, {k, e, l});
  graph.add(Task{.name = "use a, c, e", .reads = {a, c, e}});
  graph.add(Task{.name = "make d", .writes = {d}});
  graph.add(Task{.name = "use p", .reads = {p, d, k, l}});
  graph.add(Task{.name = "use x again", .reads = {x}});
  Plan plan = plain_plan(graph, pages(6));
  plan.offloads = {{.data = x, .size = pages(1), .after = {.runs = 1}},
                   {.data = p, .size = pages(2), .after = {.runs = 1}},
                   {.data = x, .size = pages(1), .is_clean = true, .after = {7, 2, 1}}};
  plan.prefetches = {{.data = x, .size = pages(1), .after = {2, 2, 0}},
                     {.data = p, .size = pages(2), .after = {7, 3, 1}},
                     {.data = x, .size = pages(1), .after = {9, 3, 2}}};
  for (Position r = 1; r < 10; ++r) plan.runs[r].after.offloads = r < 8 ? 2 : 3;
  for (Position r = 2; r < 10; ++r) plan.runs[r].after.prefetches = r < 8 ? 1 : r - 6;
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  const ToyResult wanted = run_plainly(graph, kSteps);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(execute_copy(graph, plan).result, wanted);
}

// Four pages. p (two pages) leaves; a, x, b and y fill the arena; a and b die. p may come back, but
// there are only two pages apart until x has left: then it finds room, and nothing needs
// compacting.
TEST(CopyMemory, DoesNotCompactOnceARetriedPrefetchHasFoundRoom) {
  TaskGraph graph;
  const DataId p = add_block(graph, "p", 2);
  const DataId a = add_block(graph, "a", 1);
  const DataId x = add_block(graph, "x", 1);
  const DataId b = add_block(graph, "b", 1);
  const DataId y = add_block(graph, "y", 1);
  graph.add(Task{.name = "make p", .writes = {p}});
  add_makers(graph, {a, x, b, y});
  graph.add(Task{.name = "use a, b", .reads = {a, b}});
  graph.add(Task{.name = "use p", .reads = {p}});
  graph.add(Task{.name = "use x, y", .reads = {x, y}});
  Plan plan = plain_plan(graph, pages(4));
  plan.offloads = {{.data = p, .size = pages(2), .after = {.runs = 1}},
                   {.data = x, .size = pages(1), .after = {6, 1, 0}},
                   {.data = y, .size = pages(1), .after = {6, 1, 0}}};
  plan.prefetches = {{.data = p, .size = pages(2), .after = {6, 1, 0}},
                     {.data = x, .size = pages(1), .after = {7, 3, 1}},
                     {.data = y, .size = pages(1), .after = {7, 3, 1}}};
  for (Position r = 1; r < 8; ++r) plan.runs[r].after.offloads = 1;
  plan.runs[6].after.prefetches = 1;
  plan.runs[7].after = {7, 3, 3};
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  ManualStep step{graph, plan};
  step.run(0);
  step.copies.out.wait_and_finish_next();
  for (Position r = 1; r < 6; ++r) step.run(r);
  step.copies.out.wait_until_issued(3);  // between x and y, p was tried and found no room
  step.copies.out.finish_next();
  step.copies.in.wait_until_issued(1);
  step.copies.out.finish_next();
  step.copies.in.finish_next();
  step.run(6);
  EXPECT_EQ(step.memory.compactions(), 0U);
  for (int i = 0; i < 2; ++i) step.copies.in.wait_and_finish_next();
}

}  // namespace
}  // namespace spillway::prefetch
