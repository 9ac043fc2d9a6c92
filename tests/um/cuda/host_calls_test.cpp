#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "nets/families/network_catalogue.h"
#include "prefetch/files/machine.h"
#include "prefetch/planner.h"
#include "src/step/machine_size_model.h"
#include "src/step/step.h"
#include "tests/prefetch/planned.h"
#include "tests/um/cuda/late_steps.h"
#include "tests/um/cuda/swapped_block.h"

// How often the host calls the driver in a step of ResNet-50, a launch a task included.

namespace spillway::um {
namespace {

// A step, planned for an H200. Its batch is small, so that its memory is.
class HostCalls : public ::testing::Test {
 protected:
  // `percent` of what the step needs with everything near.
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
  // Of a step when it has warmed up.
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
