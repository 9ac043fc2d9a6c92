// The places of movable state between steps, and the moves that bring it there.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "prefetch/runtime/copy_memory.h"
#include "prefetch/runtime/step_layout.h"
#include "tests/prefetch/runtime/copy_steps.h"
#include "tests/prefetch/runtime/given_copies.h"
#include "tests/prefetch/runtime/step_modes.h"
#include "tests/prefetch/swapped_toys.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using Log = std::vector<std::string>;
using um::Access;

const auto kNothing = [](std::span<std::byte* const> /*places*/) {};

// A step in copy mode, in an arena as large as its budget.
template <typename Weight>
struct CopiedWeight {
  void run_step() {
    ToyResult result;
    run_planned_step({.layout = &stage.layout, .memory = &memory}, 0, result);
  }
  [[nodiscard]] um::Bytes in_use() const { return stage.ledger.in_use(); }

  Weight subject;
  Stage stage{subject.graph, subject.plan};
  std::vector<std::byte> near = std::vector<std::byte>(subject.plan.budget.count());
  AddressedCopies copies{pages(8)};
  CopyMemory memory{stage.layout, stage.pinned, near, copies, stage.ledger};
};

TEST(CopiedState, ThatIsFarBetweenStepsIsBroughtByThePlanAlone) {
  CopiedWeight<FarWeight> step;
  step.memory.enter();
  EXPECT_EQ(step.copies.take_log(), Log{});
  step.run_step();
  EXPECT_EQ(step.copies.take_log(), (Log{"in 0+2", "in 0+2", "out 0+2"}));
  EXPECT_EQ(step.in_use(), 0_B);
  step.memory.leave();
  EXPECT_EQ(step.copies.take_log(), Log{});
}

TEST(CopiedState, ThatIsNearBetweenStepsIsBroughtOnceAndSentFarAtTheEnd) {
  CopiedWeight<NearWeight> step;
  step.memory.enter();
  EXPECT_EQ(step.copies.take_log(), Log{"in 0+2"});
  EXPECT_EQ(step.in_use(), pages(2));
  for (int i = 0; i < 2; ++i) {
    step.run_step();
    EXPECT_EQ(step.copies.take_log(), (Log{"out 0+2", "in 0+2"}));
    EXPECT_EQ(step.in_use(), pages(2));
  }
  step.memory.leave();
  EXPECT_EQ(step.copies.take_log(), Log{"out 0+2"});
  EXPECT_EQ(step.in_use(), 0_B);
}

TEST(CopiedState, WhoseFarCopyIsRenewedNeedsNoCopyToLeave) {
  CopiedWeight<RenewedWeight> step;
  ASSERT_NO_FATAL_FAILURE(expect_verified(step.subject.graph, step.subject.plan));
  step.memory.enter();
  EXPECT_EQ(step.copies.take_log(), Log{"in 0+2"});
  for (int i = 0; i < 2; ++i) {
    step.run_step();
    EXPECT_EQ(step.copies.take_log(), (Log{"in 0+2", "out 0+2", "in 0+2"}));
    EXPECT_EQ(step.in_use(), pages(2));
  }
  step.memory.leave();
  EXPECT_EQ(step.copies.take_log(), Log{});
  EXPECT_EQ(step.in_use(), 0_B);
}

// The next step frees the block without a copy.
TEST(CopiedState, WhoseFarCopyIsValidHasAnotherOnceItIsWrittenBetweenSteps) {
  CopiedWeight<RenewedWeight> step;
  step.memory.enter();
  step.run_step();
  static_cast<void>(step.copies.take_log());
  step.memory.with_state({&step.subject.w, 1}, Access::kReadWrite, kNothing);
  EXPECT_EQ(step.copies.take_log(), Log{"out 0+2"});
}

TEST(CopiedState, ThatNobodyHasWrittenNeedsNoCopyToLeave) {
  CopiedWeight<StillWeight> step;
  step.memory.enter();
  step.memory.leave();
  EXPECT_EQ(step.copies.take_log(), Log{"in 0+2"});
  EXPECT_EQ(step.in_use(), 0_B);
}

TEST(CopiedState, ThatIsNearIsUsedWhereItIsAndWrittenThrough) {
  CopiedWeight<NearWeight> step;
  step.memory.enter();
  static_cast<void>(step.copies.take_log());
  step.memory.with_state({&step.subject.w, 1}, Access::kRead, kNothing);
  EXPECT_EQ(step.copies.take_log(), Log{});
  step.memory.with_state({&step.subject.w, 1}, Access::kReadWrite, kNothing);
  EXPECT_EQ(step.copies.take_log(), Log{"out 0+2"});
  EXPECT_EQ(step.in_use(), pages(2));
}

TEST(CopiedState, ThatIsFarComesAsFarAsItsUseNeedsIt) {
  CopiedWeight<FarWeight> step;
  step.memory.enter();
  const auto use_it = [&](Access access) {
    step.memory.with_state({&step.subject.w, 1}, access,
                           [&](const auto& /*places*/) { EXPECT_EQ(step.in_use(), pages(2)); });
    EXPECT_EQ(step.in_use(), 0_B);
    return step.copies.take_log();
  };
  EXPECT_EQ(use_it(Access::kRead), Log{"in 0+2"});
  EXPECT_EQ(use_it(Access::kWrite), Log{"out 0+2"});
  EXPECT_EQ(use_it(Access::kReadWrite), (Log{"in 0+2", "out 0+2"}));
}

// Three pages hold either w, which is near, or v, which is far.
TEST(CopiedState, MakesRoomForWhatIsFarAndComesHomeForTheNextStep) {
  struct TwoWeights : NearWeight {
    TwoWeights() {
      v = graph.add(DataBlock{.name = "v", .size = pages(3)});
      make_offloadable(graph, v);
      graph.tasks[1].reads.push_back(v);  // and t is one page smaller than the room that it leaves
      graph.data[1].size = 16_B;
      plan.graph = fingerprint(graph);
      plan.budget = pages(3) + 64_B;
      plan.prefetches.insert(plan.prefetches.begin(),
                             {.data = v, .size = pages(3), .after = {.runs = 1, .offloads = 1}});
      plan.offloads.push_back(
          {.data = v, .size = pages(3), .is_clean = true, .after = {.runs = 2}});
      plan.prefetches[1].after = {.runs = 2, .offloads = 2};
      plan.runs[1].after = {.runs = 1, .offloads = 1, .prefetches = 1};
      plan.runs[2].after = {.runs = 2, .offloads = 2, .prefetches = 2};
    }
    DataId v{};
  };
  CopiedWeight<TwoWeights> step;
  ASSERT_NO_FATAL_FAILURE(expect_verified(step.subject.graph, step.subject.plan));
  const um::Bytes pinned = step.in_use();
  step.memory.enter();
  step.run_step();
  EXPECT_EQ(step.copies.take_log(), (Log{"in 0+2", "out 0+2", "in 2+3", "in 0+2"}));
  step.memory.with_state({&step.subject.v, 1}, Access::kRead, kNothing);
  EXPECT_EQ(step.copies.take_log(), (Log{"out 0+2", "in 2+3"}));
  EXPECT_EQ(step.in_use(), pinned);
  step.run_step();
  EXPECT_EQ(step.copies.take_log(), (Log{"in 0+2", "out 0+2", "in 2+3", "in 0+2"}));
  EXPECT_EQ(step.in_use(), pinned + pages(2));
}

// w is near between steps; v, which run 0 reads, is far.
TEST(CopiedState, GivesSeveralBlocksSideBySide) {
  struct NearAndFar : StillWeight {
    NearAndFar() {
      v = graph.add(DataBlock{.name = "v", .size = pages(1)});
      make_offloadable(graph, v);
      graph.tasks[0].reads.push_back(v);
      plan.graph = fingerprint(graph);
      plan.prefetches = {{.data = v, .size = pages(1)}};
      plan.offloads = {{.data = v, .size = pages(1), .is_clean = true, .after = {.runs = 1}}};
      plan.runs[0].after.prefetches = 1;
      for (Position p : {1, 2}) plan.runs[p].after = {p, 1, 1};
    }
    DataId v{};
  };
  CopiedWeight<NearAndFar> step;
  ASSERT_NO_FATAL_FAILURE(expect_verified(step.subject.graph, step.subject.plan));
  step.memory.enter();
  EXPECT_EQ(step.copies.take_log(), Log{"in 0+2"});
  const std::vector<DataId> both{step.subject.w, step.subject.v};
  step.memory.with_state(both, Access::kReadWrite, [&](std::span<std::byte* const> places) {
    ASSERT_EQ(places.size(), 2U);
    EXPECT_EQ(places[1] - places[0], 2 * static_cast<std::ptrdiff_t>(kPage.count()));
    EXPECT_EQ(step.in_use(), pages(3));
  });
  EXPECT_EQ(step.copies.take_log(), (Log{"in 0+2", "in 2+1", "out 0+2", "out 2+1"}));
  EXPECT_EQ(step.in_use(), 0_B);
}

// Between steps u and w fill the arena; both leave before the runs without fixed places. u returns
// beside x, to page 1. After the last run x is dead, and the four pages for w are not adjacent.
TEST(CopiedState, ComesHomeByCompactionWhereTheArenaIsInPieces) {
  TaskGraph graph = toy_graph("u:1 w:4", "u, w = change(u, w)");
  add_unplaceable_runs(graph, 5);
  graph.add(DataBlock{.name = "x", .size = pages(1)});
  add_tasks(graph, "x = make x(); use x(x, u)");
  const DataId u{0};
  const DataId w{1};
  for (const DataId id : {u, w}) make_offloadable(graph, id);
  Plan plan = plain_plan(graph, pages(5));
  plan.offloads = {{.data = u, .size = pages(1), .after = {.runs = 1}},
                   {.data = w, .size = pages(4), .after = {.runs = 1}}};
  plan.prefetches = {{.data = u, .size = pages(1), .after = {.runs = 7, .offloads = 2}},
                     {.data = w, .size = pages(4), .after = {.runs = 8, .offloads = 2}}};
  for (Position p = 1; p < 8; ++p) plan.runs[p].after.offloads = 2;
  plan.runs[7].after.prefetches = 1;
  expect_copied(graph, plan, false, 3 * kSteps);
}

// Another step, with another order of blocks and without one of them, shares the places.
TEST(StatePlacesOfSteps, AreWhatTheyAgreeOn) {
  MovedWeight subject;
  const StepLayout alone{subject.graph, subject.plan};
  EXPECT_EQ(alone.state.extent, pages(2));
  EXPECT_EQ(alone.placement.blocks[0], 0_B);
  EXPECT_EQ(alone.placement.blocks[1], pages(2));
  const StepLayout shared{
      subject.graph, subject.plan, {.offsets = {pages(4), 0_B}, .extent = pages(7)}};
  EXPECT_EQ(shared.placement.blocks[0], pages(4));
  EXPECT_EQ(shared.placement.blocks[1], pages(7));
  EXPECT_EQ(shared.placement.extent, pages(10));
  EXPECT_THROW(
      (StepLayout{subject.graph, subject.plan, {.offsets = {pages(4), 0_B}, .extent = pages(5)}}),
      um::ContractError);
  EXPECT_THROW(
      (StepLayout{subject.graph, subject.plan, {.offsets = {64_B, 0_B}, .extent = pages(5)}}),
      um::ContractError);
}

// A tensor that leaves lies behind all state.
TEST(StatePlacesOfSteps, AreBelowTensorsInFarMemory) {
  NearWeight subject;
  const DataId x = subject.graph.add(DataBlock{.name = "x", .size = pages(1)});
  subject.graph.tasks[0].writes.push_back(x);
  subject.graph.tasks[2].reads.push_back(x);
  subject.plan.graph = fingerprint(subject.graph);
  subject.plan.offloads.push_back({.data = x, .size = pages(1), .after = {.runs = 1}});
  subject.plan.prefetches.push_back(
      {.data = x, .size = pages(1), .after = {.runs = 2, .offloads = 2}});
  subject.plan.runs[1].after.offloads = 2;
  subject.plan.runs[2].after = {.runs = 2, .offloads = 2, .prefetches = 2};
  ASSERT_NO_FATAL_FAILURE(expect_verified(subject.graph, subject.plan));
  const StepLayout layout{
      subject.graph, subject.plan, {.offsets = {pages(1), 0_B, 0_B}, .extent = pages(4)}};
  const FarPlacement far{layout};
  EXPECT_EQ(far.offsets[0], pages(1));
  EXPECT_EQ(far.offsets[static_cast<std::size_t>(x)], pages(4));
  EXPECT_EQ(far.extent, pages(5));
}

// Runs neither populate nor discard blocks that live across steps.
TEST(StatePlacesOfSteps, BeginAndEndInNoRun) {
  const FarWeight subject;
  const StepLayout layout{subject.graph, subject.plan};
  EXPECT_EQ(layout.used_state(), std::vector{subject.w});
  for (const RunLayout& run : layout.runs) {
    EXPECT_EQ(std::ranges::count(run.begins, subject.w), 0);
    EXPECT_EQ(std::ranges::count(run.ends, subject.w), 0);
  }
}

}  // namespace
}  // namespace spillway::prefetch
