#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/prefetch/planned.h"
#include "tests/prefetch/runtime/manual_moves.h"
#include "tests/prefetch/runtime/step_modes.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch::testing {

/// Copies that end when the test says so, and do not copy.
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

inline void expect_verified(const TaskGraph& graph, const Plan& plan) {
  ASSERT_EQ(reason_against(graph, plan), "");
}

/// Executes the plan, which must verify and fill its budget. Expects fixed places, or the given
/// number of compactions.
inline void expect_copied(const TaskGraph& graph, const Plan& plan, bool has_fixed_places,
                          std::size_t compactions) {
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  const Executed executed = execute_copy(graph, plan);
  EXPECT_EQ(executed.has_fixed_places, has_fixed_places);
  EXPECT_EQ(executed.compactions, compactions);
  EXPECT_EQ(executed.result, run_plainly(graph, kSteps));
  EXPECT_EQ(executed.peak, plan.budget);
}

/// A step with copies that end when the test says so.
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
  CopyMemory memory{stage.layout, stage.pinned, std::as_writable_bytes(std::span{near}), copies,
                    stage.ledger};
};

/// Adds five runs with blocks that fill `count` pages (at least four) at each run except the third,
/// and have no fixed places in that room. Suppose "first" is at page 0, and the only ends are 0 and
/// the last page. "second" lies at page 1 or the last one (run 2), so "third", alive beside
/// "first", lies just before the last (run 4), while run 5 leaves it only an end. Dynamic
/// allocation compacts twice: for runs 4 and 5.
inline void add_unplaceable_runs(TaskGraph& graph, std::uint64_t count) {
  const auto add_block = [&](const std::string& name, std::uint64_t size) {
    return graph.add(DataBlock{.name = name, .size = pages(size)});
  };
  const DataId first = add_block("first", 1);
  const DataId second = add_block("second", 1);
  const DataId third = add_block("third", 1);
  const auto add = [&](std::vector<DataId> reads, std::vector<DataId> writes, std::uint64_t fill) {
    const std::string name = "fill " + std::to_string(graph.tasks.size());
    if (fill > 0) writes.push_back(add_block(name, fill));
    graph.add(Task{.name = name, .reads = std::move(reads), .writes = std::move(writes)});
  };
  add({}, {first}, count - 1);
  add({}, {second}, count - 2);
  add({first}, {third}, 0);
  add({second}, {}, count - 2);
  add({third}, {}, count - 1);
}

}  // namespace spillway::prefetch::testing
