#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/um/cuda/late_steps.h"
#include "tests/um/cuda/tight_step.h"

// What the host asks of the driver for near memory, in a step that goes like the one before.

namespace spillway::um {
namespace {

using Log = std::vector<std::string>;

std::size_t count(const Log& log, const std::string& part) {
  return static_cast<std::size_t>(std::ranges::count_if(
      log, [&](const std::string& line) { return line.find(part) != std::string::npos; }));
}

class ManagedCalls : public ::testing::Test {
 protected:
  // Of the second step, on a GPU that does its work when it gets it, or as late as can be.
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
    EXPECT_EQ(
        count(log, "um out: record") + count(log, "um in: record") + count(log, "um in 2: record"),
        offloads + prefetches);
    EXPECT_LE(count(log, ": wait for "), prefetches);
  }
  EXPECT_GT(count(calls(LateMode::kManaged, true), "compute: wait for um in"), 0U);
}

TEST_F(ManagedCalls, DropAndPopulatePagesWhereTheDriverIsTold) {
  const Log log = calls(LateMode::kDiscarding, false);
  EXPECT_GT(count(log, "um upkeep: discard slab"), 0U);
  EXPECT_GT(count(log, "um upkeep: discard and prefetch near"), 0U);
}

}  // namespace
}  // namespace spillway::um
