#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "prefetch/files/machine.h"
#include "prefetch/planner.h"
#include "prefetch/runtime/copy_memory.h"
#include "prefetch/runtime/given_step.h"
#include "prefetch/runtime/managed_memory.h"
#include "prefetch/runtime/resident_memory.h"
#include "prefetch/runtime/runner/step_runner.h"
#include "prefetch/runtime/step_layout.h"
#include "src/program/machine_size_model.h"
#include "src/program/step.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/runtime/copy_steps.h"
#include "tests/um/cuda/declared_uses.h"
#include "tests/um/cuda/late_gpu.h"
#include "tests/um/cuda/recording_api.h"
#include "tests/um/cuda/swapped_block.h"
#include "um/cuda/cuda_device.h"
#include "um/error.h"

namespace spillway::um {
namespace {

// The memory modes of a GPU.
enum class LateMode : std::uint8_t {
  kResident,
  kManaged,
  kDiscarding,  ///< managed, with discards reported to the driver
  kCopy
};

// The order of a step, and who keeps it.
enum class LateOrder : std::uint8_t {
  kWalked,   ///< the host during the step, measuring times
  kUntimed,  ///< the host, without times
  kGiven     ///< the GPU, with all work submitted ahead; later steps repeat a captured step
};

// A plan on a GPU that works as late as possible. Kernels only declare their uses.
class LateSteps {
 public:
  // `graph` and `plan` outlive this object. Requires: the plan verifies.
  LateSteps(const prefetch::TaskGraph& graph, const prefetch::Plan& plan, LateMode mode,
            LateOrder order = LateOrder::kWalked,
            std::unique_ptr<RecordingApi> driver = std::make_unique<RecordingApi>())
      : graph_{graph},
        plan_{plan},
        order_{order},
        is_discarding_{mode == LateMode::kDiscarding},
        owned_{std::move(driver)},
        layout_{graph, plan},
        ledger_{plan.budget} {
    place_pinned();
    ledger_.charge(layout_.block_sizes.pinned());
    const Bytes near = round_down(ledger_.limit() - ledger_.in_use(), plan.page);
    const Bytes extent = std::max(plan.page, layout_.placement.extent);
    if (mode == LateMode::kManaged || mode == LateMode::kDiscarding) {
      managed_ = device_.make_managed_space({.size = extent,
                                             .near = std::min(near, extent),
                                             .page = plan.page,
                                             .gpu = {.discards = mode == LateMode::kDiscarding}},
                                            ledger_);
      const prefetch::SlabAddress address{layout_, *pinned_, managed_->slab()};
      memory_ = std::make_unique<prefetch::ManagedMemory>(layout_, address, managed_->hints());
      // The slab is not touched after a step, since discards are still in flight.
    } else if (mode == LateMode::kCopy) {
      const Bytes far = std::max(plan.page, prefetch::FarPlacement{layout_}.extent);
      copied_ = device_.make_copy_space({.size = far, .near = near});
      auto memory = std::make_unique<prefetch::CopyMemory>(layout_, *pinned_, copied_->near(),
                                                           copied_->copies(), ledger_);
      copy_ = memory.get();
      still_ = copied_->near();
      memory_ = std::move(memory);
    } else {
      slab_ = std::make_unique<Block>(device_.memory(), extent);
      memory_ = std::make_unique<prefetch::ResidentMemory>(
          prefetch::SlabAddress{layout_, *pinned_, slab_->bytes()});
      still_ = slab_->bytes();
    }
    runner_.emplace(plan_, *memory_, *compute_);
    if (order_ == LateOrder::kGiven) {
      lanes_ = compute_->make_lanes();
      prefetch::FixedPlaces* const places = memory_->fixed_places();
      expects(places != nullptr, "a step with fixed places");
      given_.emplace(plan_, *places, *lanes_);
    }
  }

  // Runs steps like a training; `seed` draws the order of the GPU's streams. The state leaves the
  // memory after every second step.
  void run(int steps, std::uint32_t seed) {
    const LateGpu late{gpu_, seed};
    for (int step = 0; step < steps; ++step) {
      if (step % 2 == 0) memory_->enter();
      run_one();
      if (step % 2 == 1) memory_->leave();
    }
    EXPECT_LE(ledger_.peak(), plan_.budget);
    if (is_discarding_) {
      EXPECT_LE(gpu_.near_peak() + layout_.block_sizes.pinned(), plan_.budget);
    }
  }
  // Runs one step on a GPU that is as late as the test says. Returns the number of driver calls.
  std::size_t run_one() {
    const std::size_t before = gpu_.calls();
    compute_->enqueue([this] {
      if (order_ == LateOrder::kGiven) {
        give();
      } else {
        walk();
      }
    });
    compute_->synchronize();
    use_everything();
    ++steps_;
    return gpu_.calls() - before;
  }
  // Returns the timeline of the last step that was not repeated.
  [[nodiscard]] prefetch::Timeline timeline() { return given_->timeline(); }

  // Returns how often the arena was compacted.
  [[nodiscard]] std::uint64_t compactions() const {
    return copy_ == nullptr ? 0 : copy_->compactions();
  }

 private:
  void walk() {
    const auto launch = [this](prefetch::Position position) {
      const prefetch::TaskRun& run = plan_.runs[position];
      gpu_.launch(compute_->native(), graph_[run.task].name, declared_uses(graph_, run, *memory_));
    };
    if (order_ == LateOrder::kWalked) {
      static_cast<void>(runner_->run(launch));
    } else {
      runner_->run_untimed(launch);
    }
  }
  void give() {
    const prefetch::FixedPlaces& places = *memory_->fixed_places();
    const auto launch = [&](prefetch::Position position) {
      const prefetch::TaskRun& run = plan_.runs[position];
      const auto address = [&](prefetch::DataId id) { return places.address(position, id); };
      gpu_.launch(compute_->native(), graph_[run.task].name,
                  declared_uses(graph_, run, address, places.workspace(position)));
    };
    if (steps_ == 0) {
      given_->run(launch);
      return;
    }
    if (!given_->has_kept()) given_->keep(1, launch);
    launch(0);
    given_->repeat();
  }
  // All runs and moves of a finished step have ended, so the host may use their memory.
  void use_everything() {
    for (const Block& block : state_) gpu_.touch(block.bytes(), Access::kReadWrite);
    if (!still_.empty()) gpu_.touch(still_, Access::kReadWrite);
  }
  // Places state, small tensors and small workspaces in device memory.
  void place_pinned() {
    std::vector<std::byte*> state(graph_.data.size(), nullptr);
    for (std::size_t i = 0; i < state.size(); ++i) {
      const prefetch::DataBlock& block = graph_.data[i];
      if (block.kind == prefetch::DataKind::kTensor) continue;
      if (layout_.block_sizes.is_movable(prefetch::DataId(i))) continue;
      state[i] = state_.emplace_back(device_.memory(), block.size).data();
    }
    const Bytes buffer = prefetch::PinnedBlocks::buffer_size(graph_, layout_.block_sizes);
    const Block& small = state_.emplace_back(device_.memory(), std::max(plan_.page, buffer));
    pinned_ =
        std::make_unique<prefetch::PinnedBlocks>(graph_, layout_.block_sizes, state, small.bytes());
  }

  const prefetch::TaskGraph& graph_;
  const prefetch::Plan& plan_;
  const LateOrder order_;
  const bool is_discarding_;
  int steps_ = 0;
  std::unique_ptr<RecordingApi> owned_;
  RecordedGpu& gpu_ = *owned_;
  CudaDevice device_{std::move(owned_), {}};
  std::vector<Block> state_;
  const prefetch::StepLayout layout_;
  std::unique_ptr<prefetch::PinnedBlocks> pinned_;
  Ledger ledger_;
  std::unique_ptr<ManagedSpace> managed_;
  std::unique_ptr<CopySpace> copied_;
  std::unique_ptr<Block> slab_;
  std::unique_ptr<CudaStream> compute_ = device_.make_cuda_stream("compute");
  std::unique_ptr<prefetch::StepMemory> memory_;
  std::optional<prefetch::StepRunner> runner_;
  std::unique_ptr<Lanes> lanes_;
  std::optional<prefetch::GivenStep> given_;
  prefetch::CopyMemory* copy_ = nullptr;  // memory_ in copy mode
  Range still_;                           // memory of moved blocks, idle between steps
};

// Several steps of plans on a GPU that works as late as possible. Each access of a kernel, copy,
// hint or free must have every order that it needs; the order of the streams is drawn.
// Driver calls for near memory in a repeated step.
// The number of driver calls in a step of ResNet-50, including one launch per task.

using prefetch::DataId;
using prefetch::Plan;
using prefetch::Position;
using prefetch::TaskGraph;

// A network of the catalogue on an H200. The memory is a tenth more than the least that any plan
// needs, or `percent` of the need when nothing moves.
struct TightStep {
  TightStep(const std::string& name, std::size_t batch, LateMode mode, std::uint64_t percent = 0,
            bool has_far_state = false)
      : step{make_step(name, batch, has_far_state)},
        profile{prefetch::model_profile(step.graph, prefetch::find_machine("h200"))} {
    const auto need = near_need(step.graph, prefetch::BlockSizes{step.graph, kPage});
    const Bytes budget = percent == 0 ? Bytes{need.smallest.count() * 11 / 10}
                                      : Bytes{need.resident.count() * percent / 100};
    plan = prefetch::testing::planned("joint", {.graph = step.graph,
                                                .profile = profile,
                                                .budget = budget,
                                                .page = kPage,
                                                .whole_blocks = mode == LateMode::kCopy,
                                                .may_recompute = true,
                                                // In another order nothing moves.
                                                .may_reorder = false});
  }
  static Step make_step(const std::string& name, std::size_t batch, bool has_far_state) {
    Step made = make_training_step(
        nets::build_network(name, {.image = nets::Shape{3, 32, 32}, .classes = 10}),
        MachineSizeModel{}, {.batch = batch});
    for (prefetch::DataBlock& block : made.graph.data) {
      if (block.kind == prefetch::DataKind::kState) block.is_offloadable = has_far_state;
    }
    return made;
  }
  [[nodiscard]] std::ptrdiff_t recomputations() const {
    return std::ranges::count_if(plan.runs, &prefetch::TaskRun::is_recomputation);
  }

  const Step step;
  const prefetch::Profile profile;
  prefetch::Plan plan;
};

constexpr int kSteps = 2;

// Submitted ahead: one step with times, then two repeats of a captured step.
constexpr int kGivenSteps = 3;

struct Way {
  LateMode mode;
  LateOrder order;
};

// Gtest requires this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Way& way, std::ostream* out) {
  const auto [mode, order] = way;
  *out << (mode == LateMode::kResident     ? "Resident"
           : mode == LateMode::kManaged    ? "Managed"
           : mode == LateMode::kDiscarding ? "Discarding"
                                           : "Copy")
       << (order == LateOrder::kWalked    ? "Walked"
           : order == LateOrder::kUntimed ? "Untimed"
                                          : "Given");
}

void expect_ordered(const TaskGraph& graph, const Plan& plan, Way way, std::uint32_t seeds) {
  ASSERT_EQ(prefetch::testing::reason_against(graph, plan), "");
  const int steps = way.order == LateOrder::kGiven ? kGivenSteps : kSteps;
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    LateSteps{graph, plan, way.mode, way.order}.run(steps, seed);
  }
}

class OrderedSteps : public ::testing::TestWithParam<Way> {};

TEST_P(OrderedSteps, OfASwappedBlock) {
  const SwappedBlock subject;
  expect_ordered(subject.graph, subject.plan, GetParam(), 5);
}

TEST_P(OrderedSteps, OfLeNet) {
  const TightStep subject{"lenet", 512, GetParam().mode};
  EXPECT_FALSE(subject.plan.offloads.empty());
  expect_ordered(subject.step.graph, subject.plan, GetParam(), 1);
}

INSTANTIATE_TEST_SUITE_P(EachMode, OrderedSteps,
                         ::testing::Values(Way{LateMode::kResident, LateOrder::kWalked},
                                           Way{LateMode::kManaged, LateOrder::kWalked},
                                           Way{LateMode::kCopy, LateOrder::kWalked},
                                           Way{LateMode::kManaged, LateOrder::kUntimed},
                                           Way{LateMode::kDiscarding, LateOrder::kWalked},
                                           Way{LateMode::kDiscarding, LateOrder::kUntimed},
                                           Way{LateMode::kCopy, LateOrder::kUntimed},
                                           Way{LateMode::kResident, LateOrder::kGiven},
                                           Way{LateMode::kCopy, LateOrder::kGiven}),
                         ::testing::PrintToStringParamName());

using OrderedRecomputations = OrderedSteps;

TEST_P(OrderedRecomputations, OfAResidualNetwork) {
  const TightStep subject{"resnet:1,1,1,1", 32, GetParam().mode};
  EXPECT_FALSE(subject.plan.prefetches.empty());
  EXPECT_GT(subject.recomputations(), 0);
  expect_ordered(subject.step.graph, subject.plan, GetParam(), 1);
}

INSTANTIATE_TEST_SUITE_P(EachMode, OrderedRecomputations,
                         ::testing::Values(Way{LateMode::kManaged, LateOrder::kWalked},
                                           Way{LateMode::kDiscarding, LateOrder::kWalked},
                                           Way{LateMode::kCopy, LateOrder::kWalked}),
                         ::testing::PrintToStringParamName());

using OrderedMovesOfState = OrderedSteps;

// Batch 4: weights and gradients exceed the rest. With 60 % of the memory they have fixed places.
TEST_P(OrderedMovesOfState, OfANetworkWhoseWeightsMove) {
  const TightStep subject{"resnet:1,1,1,1", 4, GetParam().mode, 60, true};
  const TaskGraph& graph = subject.step.graph;
  const prefetch::StateHome home{graph, prefetch::BlockSizes{graph, kPage}, subject.plan};
  EXPECT_GT(home.far(), Bytes{});
  expect_ordered(graph, subject.plan, GetParam(), 1);
}

INSTANTIATE_TEST_SUITE_P(EachMode, OrderedMovesOfState,
                         ::testing::Values(Way{LateMode::kManaged, LateOrder::kUntimed},
                                           Way{LateMode::kDiscarding, LateOrder::kUntimed},
                                           Way{LateMode::kCopy, LateOrder::kGiven}),
                         ::testing::PrintToStringParamName());

TEST(OrderedCopies, WhereTheArenaIsCompactedForARunAndForAPrefetch) {
  TaskGraph graph;
  prefetch::testing::add_unplaceable_runs(graph, 5);
  const DataId x = graph.tasks[0].writes[1];
  graph.tasks[4].writes = {};
  graph.tasks[4].reads.push_back(x);
  const Bytes size = graph[x].size;
  Plan plan = prefetch::testing::plain_plan(graph, prefetch::testing::pages(5));
  plan.offloads = {{.data = x, .size = size, .after = {.runs = 1}}};
  plan.prefetches = {{.data = x, .size = size, .after = {.runs = 4, .offloads = 1}}};
  for (Position p = 1; p < 5; ++p) plan.runs[p].after.offloads = 1;
  plan.runs[4].after.prefetches = 1;
  for (std::uint32_t seed = 0; seed < 3; ++seed) {
    LateSteps steps{graph, plan, LateMode::kCopy};
    steps.run(kSteps, seed);
    EXPECT_EQ(steps.compactions(), 2 * kSteps);
  }
}

using Log = std::vector<std::string>;

std::size_t count(const Log& log, const std::string& part) {
  return static_cast<std::size_t>(std::ranges::count_if(
      log, [&](const std::string& line) { return line.find(part) != std::string::npos; }));
}

class ManagedCalls : public ::testing::Test {
 protected:
  // Returns the calls of the second step, on a GPU that works at once or as late as possible.
  [[nodiscard]] Log calls(LateMode mode, bool is_late) const {
    auto owned = std::make_unique<RecordingApi>();
    RecordingApi& driver = *owned;
    LateSteps steps{subject.step.graph, subject.plan, mode, LateOrder::kWalked, std::move(owned)};
    const auto step = [&] { is_late ? steps.run(1, 0) : static_cast<void>(steps.run_one()); };
    step();
    static_cast<void>(driver.take_log());
    step();
    return driver.take_log();
  }

  const TightStep subject{"resnet:1,1,1,1", 32, LateMode::kManaged};
  const std::size_t offloads = subject.plan.offloads.size();
  const std::size_t prefetches = subject.plan.prefetches.size();
};

TEST_F(ManagedCalls, AreThoseOfTheMovesAloneWhereAllUnifiedMemoryFits) {
  for (const bool is_late : {false, true}) {
    const Log log = calls(LateMode::kManaged, is_late);
    EXPECT_EQ(count(log, "um upkeep"), 0U);
    EXPECT_EQ(count(log, ": prefetch "), offloads + prefetches);
    EXPECT_EQ(count(log, "um out: record") + count(log, "um out 2: record"), offloads);
    EXPECT_EQ(count(log, "um in: record") + count(log, "um in 2: record"), prefetches);
    EXPECT_LE(count(log, ": wait for "), prefetches);
  }
  EXPECT_GT(count(calls(LateMode::kManaged, true), "compute: wait for um in"), 0U);
}

TEST_F(ManagedCalls, DropAndPopulatePagesWhereTheDriverIsTold) {
  const Log log = calls(LateMode::kDiscarding, false);
  EXPECT_GT(count(log, "um upkeep: discard slab"), 0U);
  EXPECT_GT(count(log, "um upkeep: discard and prefetch near"), 0U);
}

// A step planned for an H200. A small batch keeps its memory small.
class HostCalls : public ::testing::Test {
 protected:
  // Plans for `percent` of the step's need with everything near.
  [[nodiscard]] prefetch::Plan planned(LateMode mode, std::uint64_t percent) const {
    const Bytes all = near_need(step_.graph, prefetch::BlockSizes{step_.graph, kPage}).resident;
    return prefetch::testing::planned(
        mode == LateMode::kResident ? "resident" : "joint",
        {.graph = step_.graph,
         .profile = prefetch::model_profile(step_.graph, prefetch::find_machine("h200")),
         .budget = Bytes{all.count() * percent / 100},
         .page = kPage,
         .whole_blocks = mode == LateMode::kCopy,
         .may_recompute = true});
  }
  // Counts the calls of a step after warm-up.
  [[nodiscard]] std::size_t count(LateMode mode, std::uint64_t percent, LateOrder order) {
    const prefetch::Plan plan = planned(mode, percent);
    EXPECT_EQ(plan.offloads.empty(), mode == LateMode::kResident);
    LateSteps steps{step_.graph, plan, mode, order};
    for (int warm_up = 0; warm_up < 2; ++warm_up) static_cast<void>(steps.run_one());
    const std::size_t calls = steps.run_one();
    RecordProperty(std::to_string(static_cast<int>(mode)) + "_" +
                       std::to_string(static_cast<int>(order)) + "_calls",
                   static_cast<int>(calls));
    return calls;
  }

  const Step step_ = make_training_step(
      nets::build_network("resnet50", {.image = nets::Shape{3, 224, 224}, .classes = 1000}),
      MachineSizeModel{}, {.batch = 16});
};

TEST_F(HostCalls, AreFewWhereAStepIsRepeated) {
  EXPECT_GT(count(LateMode::kResident, 100, LateOrder::kWalked), 1000U);
  EXPECT_LE(count(LateMode::kResident, 100, LateOrder::kGiven), 30U);
  EXPECT_GT(count(LateMode::kCopy, 40, LateOrder::kWalked), 1000U);
  EXPECT_LE(count(LateMode::kCopy, 40, LateOrder::kGiven), 30U);
}

TEST_F(HostCalls, OfUnifiedMemoryAreHalfAsManyWithoutTimes) {
  const std::size_t timed = count(LateMode::kManaged, 40, LateOrder::kWalked);
  EXPECT_LE(count(LateMode::kManaged, 40, LateOrder::kUntimed), timed / 2);
}

}  // namespace
}  // namespace spillway::um
