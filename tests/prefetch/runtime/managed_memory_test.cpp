#include "prefetch/runtime/managed_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/prefetch/planned.h"
#include "tests/prefetch/runtime/step_modes.h"
#include "tests/prefetch/swapped_toys.h"
#include "tests/prefetch/toy.h"
#include "um/bytes.h"
#include "um/error.h"
#include "um/hints.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// Records every hint as text: "populate 2+1" is populate() of one page from page 2 on. Moves end
// at once. If launches can wait, prefetches end when the test says so.
class RecordedHints final : public um::Hints {
 public:
  explicit RecordedHints(um::Range slab) : slab_{slab} {}

  void prefetch(um::Range range, um::MemoryTier tier, um::Completion done) override {
    note((tier == um::MemoryTier::kNear ? "prefetch " : "offload ") + pages_of(range));
    if (launches_can_wait && tier == um::MemoryTier::kNear) {
      const std::lock_guard lock{mutex_};
      under_way_.push_back(std::move(done));
    } else {
      done(failure);
    }
  }
  [[nodiscard]] bool lets_launches_wait(um::Range range) override {
    if (launches_can_wait) note("wait " + pages_of(range));
    return launches_can_wait;
  }
  void end_prefetches() {
    std::vector<um::Completion> ended;
    {
      const std::lock_guard lock{mutex_};
      ended.swap(under_way_);
    }
    for (const um::Completion& done : ended) done(failure);
  }
  void populate(um::Range range) override { note("populate " + pages_of(range)); }
  void discard(um::Range range) override { note("discard " + pages_of(range)); }
  void advise(um::Range range, um::Advice /*advice*/) override {
    note("advise " + pages_of(range));
  }
  void begin_use(std::span<const um::Use> operands) override { note("begin" + uses(operands)); }
  void end_use(std::span<const um::Use> operands) noexcept override {
    note("end" + uses(operands));
  }

  void check() override {
    if (fault_failure != nullptr) std::rethrow_exception(fault_failure);
  }

  [[nodiscard]] std::vector<std::string> log() {
    const std::lock_guard lock{mutex_};
    return log_;
  }
  [[nodiscard]] std::vector<std::string> take_log() {
    const std::lock_guard lock{mutex_};
    return std::exchange(log_, {});
  }
  bool launches_can_wait = false;
  std::exception_ptr failure;        // of every move
  std::exception_ptr fault_failure;  // of a page fault

 private:
  void note(std::string entry) {
    const std::lock_guard lock{mutex_};
    log_.push_back(std::move(entry));
  }
  [[nodiscard]] std::string pages_of(um::Range range) const {
    const auto first = static_cast<std::size_t>(range.data() - slab_.data()) / kPage.count();
    return std::to_string(first) + "+" + std::to_string(range.size() / kPage.count());
  }
  [[nodiscard]] std::string uses(std::span<const um::Use> operands) const {
    std::string text;
    for (const um::Use& use : operands) {
      const bool reads = use.access != um::Access::kWrite;
      const bool writes = use.access != um::Access::kRead;
      text += std::string{" "} + (reads ? "r" : "") + (writes ? "w" : "") + pages_of(use.range);
    }
    return text;
  }

  um::Range slab_;
  std::mutex mutex_;
  std::vector<std::string> log_;
  std::vector<um::Completion> under_way_;
};

// a is made, is far while b is made with a workspace of one page, and returns to be updated. a has
// two pages and lies at 0; b and c have one page and lie at 2 at different times; the workspace
// lies at 3.
class ManagedMemoryTest : public ::testing::Test {
 protected:
  ManagedMemoryTest() {
    const DataId a{0};
    graph.tasks[1].algorithms = {{.workspace = pages(1)}};
    plan = plain_plan(graph, pages(3));
    plan.runs[1].after = {1, 1, 0};
    plan.runs[2].after = {2, 1, 1};
    plan.offloads = {{.data = a, .size = pages(2), .after = {.runs = 1}}};
    plan.prefetches = {{.data = a, .size = pages(2), .after = {2, 1, 0}}};
  }

  void execute(RecordedHints& hints, const Stage& stage) {
    ManagedMemory memory{stage.layout, SlabAddress{stage.layout, stage.pinned, slab}, hints};
    run_planned(stage.layout, memory, stage.state, 1);
  }

  TaskGraph graph = toy_graph("a:2 b:1 c:1", "a = make a(); b = make b(); a, c = use a(a)");
  Plan plan;
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(4 * kPage.count() / 8);
  um::Range slab = std::as_writable_bytes(std::span{words});
};

// A weight in managed memory: it lies at 0, t behind it.
template <typename Weight>
struct ManagedWeight {
  Weight subject;
  Stage stage{subject.graph, subject.plan};
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(5 * kPage.count() / 8);
  RecordedHints hints{std::as_writable_bytes(std::span{words})};
  ManagedMemory memory{
      stage.layout,
      SlabAddress{stage.layout, stage.pinned, std::as_writable_bytes(std::span{words})}, hints};
};

using Hints = std::vector<std::string>;
const auto kUsed = [](std::span<std::byte* const> /*places*/) {};

TEST(ManagedState, ThatIsNearBetweenStepsComesHome) {
  ManagedWeight<NearWeight> step;
  step.memory.enter();
  EXPECT_EQ(step.hints.take_log(), Hints{"prefetch 0+2"});
  step.memory.with_state({&step.subject.w, 1}, um::Access::kReadWrite, kUsed);
  EXPECT_EQ(step.hints.take_log(), (Hints{"begin rw0+2", "end rw0+2"}));
  step.memory.leave();
  EXPECT_EQ(step.hints.take_log(), Hints{});
}

TEST(ManagedState, ThatIsFarBetweenStepsComesForItsUse) {
  ManagedWeight<FarWeight> step;
  step.memory.enter();
  EXPECT_EQ(step.hints.take_log(), Hints{"offload 0+2"});
  step.memory.with_state({&step.subject.w, 1}, um::Access::kRead, kUsed);
  EXPECT_EQ(step.hints.take_log(),
            (Hints{"prefetch 0+2", "begin r0+2", "end r0+2", "offload 0+2"}));
  step.memory.begin_step();
  EXPECT_EQ(step.hints.take_log().front(), "offload 0+2");  // home again, then the plan's prefetch
}

// Runs two steps: w is freed, prefetched, offloaded for its far copy and prefetched again.
TEST(ManagedState, WhoseFarCopyIsRenewedMovesAsThePlanSays) {
  ManagedWeight<RenewedWeight> step;
  ASSERT_EQ(reason_against(step.subject.graph, step.subject.plan), "");
  step.memory.enter();
  EXPECT_EQ(step.hints.take_log(), Hints{"prefetch 0+2"});
  for (int i = 0; i < 2; ++i) {
    ToyResult result;
    run_planned_step({.layout = &step.stage.layout, .memory = &step.memory}, 0, result);
    Hints log = step.hints.take_log();
    std::erase_if(log, [](const std::string& hint) {
      return !hint.ends_with(" 0+2") || (!hint.starts_with("off") && !hint.starts_with("pre"));
    });
    EXPECT_EQ(log, (Hints{"offload 0+2", "prefetch 0+2", "offload 0+2", "prefetch 0+2"}));
  }
}

// Half of w is far: it cannot be used in place.
TEST(ManagedState, MayBeNearInPart) {
  ManagedWeight<MovedWeight> subject;
  TaskGraph& graph = subject.subject.graph;
  Plan plan = subject.subject.plan;
  plan.budget = pages(4);
  const auto second = [&](const Progress& after) {
    return Move{.data = DataId{0}, .offset = pages(1), .size = pages(1), .after = after};
  };
  plan.prefetches = {second({}), second({.runs = 2, .offloads = 1})};
  plan.offloads = {second({.runs = 1}), second({.runs = 3})};
  plan.runs[0].after.prefetches = 1;
  plan.runs[1].after = {.runs = 1, .offloads = 1, .prefetches = 1};
  plan.runs[2].after = {.runs = 2, .offloads = 1, .prefetches = 2};
  ASSERT_EQ(reason_against(graph, plan), "");
  const Stage stage{graph, plan};
  ManagedMemory memory{
      stage.layout,
      SlabAddress{stage.layout, stage.pinned, std::as_writable_bytes(std::span{subject.words})},
      subject.hints};
  memory.enter();
  EXPECT_EQ(subject.hints.take_log(), (Hints{"offload 1+1", "prefetch 0+1"}));
  memory.with_state({&subject.subject.w, 1}, um::Access::kRead, kUsed);
  EXPECT_EQ(subject.hints.take_log(),
            (Hints{"offload 0+1", "prefetch 0+2", "begin r0+2", "end r0+2", "offload 0+2"}));
}

TEST_F(ManagedMemoryTest, EndsTheStepWithWhatItsLastRunFailedWith) {
  RecordedHints hints{slab};
  const TaskGraph one = toy_graph("a:1", "a = make a()");
  const Plan run = plain_plan(one, pages(1));
  const Stage stage{one, run};
  ManagedMemory memory{stage.layout, SlabAddress{stage.layout, stage.pinned, slab}, hints};
  memory.begin_step();
  memory.begin_run(0);
  memory.fail(std::make_exception_ptr(um::Error{"cannot discard"}));
  EXPECT_THROW(memory.end_step(), um::Error);
}

TEST_F(ManagedMemoryTest, GivesTheHintsOfAPlanInItsOrder) {
  ASSERT_EQ(reason_against(graph, plan), "");
  RecordedHints hints{slab};
  execute(hints, Stage{graph, plan});
  EXPECT_EQ(hints.log(), (std::vector<std::string>{
                             "populate 0+2", "begin w0+2", "end w0+2", "offload 0+2",
                             "populate 2+1", "populate 3+1", "begin w2+1 w3+1", "end w2+1 w3+1",
                             "discard 2+1", "discard 3+1", "prefetch 0+2", "populate 2+1",
                             "begin rw0+2 w2+1", "end rw0+2 w2+1", "discard 0+2", "discard 2+1"}));
}

// The prefetch has two parts; the run and the end of the step wait for both.
TEST_F(ManagedMemoryTest, BeginsARunThatLetsItsLaunchWaitForPrefetchesUnderWay) {
  const DataId a{0};
  plan.prefetches = {{.data = a, .size = pages(1), .after = {2, 1, 0}},
                     {.data = a, .offset = pages(1), .size = pages(1), .after = {2, 1, 0}}};
  plan.runs[2].after.prefetches = 2;
  const Stage stage{graph, plan};
  RecordedHints hints{slab};
  hints.launches_can_wait = true;
  ManagedMemory memory{stage.layout, SlabAddress{stage.layout, stage.pinned, slab}, hints};
  for (int step = 0; step < 2; ++step) {
    memory.begin_step();
    for (Position p = 0; p < 3; ++p) {
      memory.begin_run(p);  // returns though no prefetch has ended
      memory.end_run(p);
    }
    hints.end_prefetches();
    memory.end_step();
    std::vector<std::string> log = hints.take_log();
    std::erase_if(log, [](const std::string& line) {
      return !line.starts_with("prefetch") && !line.starts_with("wait") &&
             line != "begin rw0+2 w2+1";
    });
    const auto at = [&](const std::string& line) { return std::ranges::find(log, line); };
    EXPECT_EQ(log.size(), 5U);
    EXPECT_LT(at("prefetch 0+1"), at("wait 0+1"));
    EXPECT_LT(at("prefetch 1+1"), at("wait 1+1"));
    EXPECT_LT(at("wait 1+1"), at("begin rw0+2 w2+1"));
  }
}

TEST_F(ManagedMemoryTest, GivesNoHintsOnDemandButTellsWhatIsUsed) {
  plan.residency = Residency::kOnDemand;
  plan.offloads.clear();
  plan.prefetches.clear();
  for (Position p = 0; p < 3; ++p) plan.runs[p].after = {.runs = p};
  RecordedHints hints{slab};
  execute(hints, Stage{graph, plan});
  EXPECT_EQ(hints.log(),
            (std::vector<std::string>{"begin w0+2", "end w0+2", "begin w2+1 w3+1", "end w2+1 w3+1",
                                      "begin rw0+2 w2+1", "end rw0+2 w2+1"}));
}

TEST_F(ManagedMemoryTest, MovesPartsOfABlock) {
  plan.offloads = {{.data = DataId{0}, .offset = pages(1), .size = pages(1), .after = {.runs = 1}}};
  plan.prefetches = {{.data = DataId{0}, .offset = pages(1), .size = pages(1), .after = {2, 1, 0}}};
  RecordedHints hints{slab};
  execute(hints, Stage{graph, plan});
  const std::vector<std::string> log = hints.log();
  EXPECT_EQ(log.at(3), "offload 1+1");
  EXPECT_EQ(log.at(10), "prefetch 1+1");
}

TEST_F(ManagedMemoryTest, AFailedMoveSurfacesWhereItsResultIsNeeded) {
  const Stage stage{graph, plan};
  RecordedHints hints{slab};
  hints.failure = std::make_exception_ptr(um::Error{"the far file cannot be written"});
  ManagedMemory memory{stage.layout, SlabAddress{stage.layout, stage.pinned, slab}, hints};
  memory.begin_step();
  memory.begin_run(0);
  memory.end_run(0);
  EXPECT_THROW(memory.begin_run(1), um::Error);
}

TEST_F(ManagedMemoryTest, AFailedFaultOfTheLastRunSurfacesAtTheEndOfItsStep) {
  const Stage stage{graph, plan};
  RecordedHints hints{slab};
  ManagedMemory memory{stage.layout, SlabAddress{stage.layout, stage.pinned, slab}, hints};
  memory.begin_step();
  for (Position p = 0; p < 3; ++p) {
    memory.begin_run(p);
    memory.end_run(p);
  }
  hints.fault_failure = std::make_exception_ptr(um::Error{"the far file cannot be read"});
  EXPECT_THROW(memory.end_step(), um::Error);
}

}  // namespace
}  // namespace spillway::prefetch
