#include "prefetch/runtime/copy_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

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

TEST(CopyMemory, CompactsTheArenaWhenNoPieceIsLargeEnough) {
  // Three pages. a, b and c fill them in this order; a and c die, b stays in the middle; d needs
  // two pages: they are there, but not in one piece.
  TaskGraph graph;
  const DataId a = add_block(graph, "a", 1);
  const DataId b = add_block(graph, "b", 1);
  const DataId c = add_block(graph, "c", 1);
  const DataId d = add_block(graph, "d", 2);
  graph.add(Task{.name = "make a", .writes = {a}});
  graph.add(Task{.name = "make b", .writes = {b}});
  graph.add(Task{.name = "use a", .reads = {a}, .writes = {c}});
  graph.add(Task{.name = "use b", .reads = {b}, .writes = {d}});
  const Plan plan = plain_plan(graph, pages(3));
  ASSERT_TRUE(std::holds_alternative<Verified>(verify(graph, plan)));
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
  for (const DataId id : {a, b, c, d}) {
    graph.add(Task{.name = "make " + graph[id].name, .writes = {id}});
  }
  graph.add(Task{.name = "use a, c", .reads = {a, c}, .writes = {b}});
  graph.add(Task{.name = "use all", .reads = {x, d}, .writes = {x}});
  graph.tasks[5].reads.push_back(b);
  graph.tasks[6].reads.push_back(b);
  Plan plan = plain_plan(graph, pages(4));
  plan.offloads = {{.data = x, .size = pages(2), .after = {.runs = 1}}};
  plan.prefetches = {{.data = x, .size = pages(2), .after = {.runs = 6, .offloads = 1}}};
  for (Position p = 1; p < 7; ++p) plan.runs[p].after.offloads = 1;
  plan.runs[6].after.prefetches = 1;
  const auto verdict = verify(graph, plan);
  ASSERT_TRUE(std::holds_alternative<Verified>(verdict)) << std::get<Violation>(verdict).reason;
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

TEST_F(SwappedBlock, RefusesAPlanThatMovesPartsOfBlocks) {
  graph.data[0].size = pages(2);
  Stage stage{graph, plan};
  ManualCopies copies;
  EXPECT_THROW((CopyMemory{stage.layout, stage.always_near, near_bytes, copies, stage.ledger}),
               um::ContractError);
}

// Freeing a block whose far copy is still valid takes no time, but it must not overtake the copy
// that was issued before it: run 4 counts on the room of a, the second offload, not of b.
TEST(CopyMemory, ACleanOffloadDoesNotCountForTheCopyBeforeIt) {
  TaskGraph graph;
  const DataId a = add_block(graph, "a", 1);
  const DataId b = add_block(graph, "b", 1);
  graph.add(Task{.name = "make b", .writes = {b}});
  graph.add(Task{.name = "wait"});
  graph.add(Task{.name = "use b", .reads = {b}});
  graph.add(Task{.name = "make a", .writes = {a}});
  graph.add(Task{.name = "wait again"});
  graph.add(Task{.name = "use both", .reads = {a, b}});
  Plan plan = plain_plan(graph, pages(2));
  const auto move = [](DataId id, Progress after, bool is_clean = false) {
    return Move{.data = id, .size = pages(1), .is_clean = is_clean, .after = after};
  };
  plan.offloads = {move(b, {1, 0, 0}), move(a, {4, 1, 1}), move(b, {4, 1, 1}, true)};
  plan.prefetches = {move(b, {2, 1, 0}), move(a, {5, 3, 1}), move(b, {5, 3, 1})};
  plan.runs[2].after = {2, 1, 1};
  plan.runs[4].after = {4, 2, 1};
  plan.runs[5].after = {5, 3, 3};
  ASSERT_TRUE(std::holds_alternative<Verified>(verify(graph, plan)));
  Stage stage{graph, plan};
  std::vector<std::uint64_t> near(kPage.count() / 8 * 2);
  ManualCopies copies;
  CopyMemory memory{stage.layout, stage.always_near, std::as_writable_bytes(std::span{near}),
                    copies, stage.ledger};
  memory.begin_step();
  for (Position p = 0; p < 4; ++p) {
    memory.begin_run(p);
    memory.end_run(p);
    if (p == 0) {
      copies.out.wait_until_issued(1);
      copies.out.finish_next();
    }
    if (p == 1) {
      copies.in.wait_until_issued(1);
      copies.in.finish_next();
    }
  }
  copies.out.wait_until_issued(2);
  std::atomic<bool> a_is_far = false;
  auto started = std::async(std::launch::async, [&] {
    memory.begin_run(4);
    return a_is_far.load();
  });
  // Holds however long it takes; a wrong order would show within this time.
  EXPECT_EQ(started.wait_for(100ms), std::future_status::timeout);
  a_is_far = true;
  copies.out.finish_next();
  EXPECT_TRUE(started.get());
}

}  // namespace
}  // namespace spillway::prefetch
