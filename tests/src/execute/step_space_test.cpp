#include "src/execute/step_space.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "prefetch/files/machine.h"
#include "prefetch/planners/catalogue.h"
#include "src/plan/plans.h"
#include "src/step/machine_size_model.h"
#include "tests/src/execute/noting_device.h"
#include "um/memory.h"

namespace spillway {
namespace {

using um::Bytes;

class ManagedStepSpace : public testing::Test {
 protected:
  // What a space for the training step asks of the device, planned by `planner` in `budget`.
  [[nodiscard]] um::ManagedOptions asked(const char* planner, Bytes budget) {
    plans =
        make_plans(workload, profile, budget,
                   {.memory = MemoryMode::kManaged, .planner = &prefetch::find_planner(planner)});
    const prefetch::StepLayout layout{workload.training().graph, plans.training.front()};
    um::Ledger ledger{budget};
    um::LimitedMemory near{device.memory(), ledger};
    const StepSpace space{
        device, MemoryMode::kManaged, {.page = workload.page()}, {&layout, &layout}, near, ledger};
    return device.asked;
  }

  NotingDevice device;
  nets::Network net = nets::build_network("vgg16", {.image = nets::Shape{3, 64, 64}});
  Workload workload{net, MachineSizeModel{}, {.batch = 8}};
  prefetch::Profile profile =
      prefetch::model_profile(workload.training().graph, prefetch::find_machine("v100"));
  Plans plans;
};

// The blocks that move all live at the end of the forward pass, so that none shares addresses.
TEST_F(ManagedStepSpace, SaysHowMuchWillBeFarCountingEachByteOnce) {
  const Bytes used = asked("vdnn-all", workload.need().resident).far.used;
  const prefetch::BlockSizes block_sizes{workload.training().graph, workload.page()};
  std::set<prefetch::DataId> moved;
  Bytes expected;
  for (const prefetch::Move& move : plans.training.front().offloads) {
    if (moved.insert(move.data).second) expected += block_sizes.size(move.data);
  }
  EXPECT_GT(expected, Bytes{});
  EXPECT_EQ(used, expected);
}

TEST_F(ManagedStepSpace, SaysThatNothingWillBeFarWhereNothingMoves) {
  EXPECT_EQ(asked("capacity", workload.need().peak_with_workspace).far.used, Bytes{});
}

}  // namespace
}  // namespace spillway
