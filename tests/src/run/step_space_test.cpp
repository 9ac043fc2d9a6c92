#include "src/run/step_space.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "prefetch/files/machine.h"
#include "prefetch/planners/catalogue.h"
#include "src/plan/plan_question.h"
#include "src/plan/plans.h"
#include "src/program/machine_size_model.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy.h"
#include "tests/um/hosted_device.h"
#include "um/memory.h"

namespace spillway {
namespace {

using um::Bytes;

// This machine, which notes what it was asked for, and says whether it evicts as it is told.
class NotingDevice final : public test::HostedDevice {
 public:
  explicit NotingDevice(bool evicts = true) : evicts_{evicts} {}

  um::ManagedOptions asked;

  [[nodiscard]] bool evicts() const override { return evicts_; }
  [[nodiscard]] std::unique_ptr<um::ManagedSpace> make_managed_space(
      const um::ManagedOptions& options, um::Ledger& ledger) override {
    asked = options;
    return HostedDevice::make_managed_space(options, ledger);
  }

 private:
  const bool evicts_;
};

class ManagedStepSpace : public testing::Test {
 protected:
  // What a space for the training step asks of the device, planned by `planner` in `budget`.
  [[nodiscard]] um::ManagedOptions asked(const char* planner, Bytes budget) {
    plans = answer({.steps = workload,
                    .profile = profile,
                    .budget = budget,
                    .request = {.memory = MemoryMode::kManaged,
                                .planner = &prefetch::find_planner(planner)}})
                .plans;
    const prefetch::StepLayout layout{workload.training().graph, plans.training};
    um::Ledger ledger{budget};
    um::LimitedMemory near{device.memory(), ledger};
    const StepSpace space{
        device, MemoryMode::kManaged, {.page = workload.page()}, {&layout, &layout}, {}, near,
        ledger};
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
  const auto used = asked("vdnn-all", workload.need().resident).far.used;
  const prefetch::BlockSizes block_sizes{workload.training().graph, workload.page()};
  std::set<prefetch::DataId> moved;
  Bytes expected;
  for (const prefetch::Move& move : plans.training.offloads) {
    if (moved.insert(move.data).second) expected += block_sizes.size(move.data);
  }
  EXPECT_GT(expected, Bytes{});
  EXPECT_EQ(used, expected);
}

TEST_F(ManagedStepSpace, SaysThatNothingWillBeFarWhereNothingMoves) {
  EXPECT_EQ(asked("capacity", workload.need().peak_with_workspace).far.used, Bytes{});
}

TEST_F(ManagedStepSpace, MayHaveAnyPageFarWherePagesFault) {
  const um::ManagedOptions options = asked("on-demand", workload.need().smallest);
  EXPECT_EQ(options.far.used, options.size);
}

using prefetch::DataId;
using prefetch::Plan;
using prefetch::StepLayout;
using prefetch::TaskGraph;
using prefetch::testing::kPage;
using prefetch::testing::pages;

// a has two pages and is far while b is made; then three pages are needed, with c.
struct Swapped {
  // Workspaces of `make a` and `make b`, in pages.
  Swapped(std::uint64_t of_a, std::uint64_t of_b, std::uint64_t budget) {
    const DataId a{0};
    graph.tasks[0].algorithms = {{.workspace = pages(of_a)}};
    graph.tasks[1].algorithms = {{.workspace = pages(of_b)}};
    plan = prefetch::testing::plain_plan(graph, pages(budget));
    plan.runs[1].after = {1, 1, 0};
    plan.runs[2].after = {2, 1, 1};
    plan.offloads = {{.data = a, .size = pages(2), .after = {.runs = 1}}};
    plan.prefetches = {{.data = a, .size = pages(2), .after = {2, 1, 0}}};
    EXPECT_EQ(prefetch::testing::reason_against(graph, plan), "");
  }
  [[nodiscard]] Bytes buffer(Bytes most = pages(100)) const {
    const StepLayout layout{graph, plan};
    const std::array layouts{&layout};
    return workspace_buffer(layouts, most);
  }

  TaskGraph graph =
      prefetch::testing::toy_graph("a:2 b:1 c:1", "a = make a(); b = make b(); a, c = use a(a)");
  Plan plan;
};

TEST(WorkspaceBuffer, IsThereAllTheTimeWhereThePlanLeavesRoom) {
  EXPECT_EQ((Swapped{0, 1, 4}.buffer()), pages(1));  // 3 beside it when a is used
  EXPECT_EQ((Swapped{0, 1, 3}.buffer()), Bytes{});
  EXPECT_EQ((Swapped{1, 2, 5}.buffer()), pages(2));
  EXPECT_EQ((Swapped{0, 0, 5}.buffer()), Bytes{});
}

// 4 pages beside a and c are 7; 1 page beside b and its workspace is 6.
TEST(WorkspaceBuffer, HoldsTheSmallerWorkspacesWhereThereIsNoRoomForAll) {
  EXPECT_EQ((Swapped{1, 4, 7}.buffer()), pages(4));
  EXPECT_EQ((Swapped{1, 4, 6}.buffer()), pages(1));
  EXPECT_EQ((Swapped{1, 4, 5}.buffer()), Bytes{});
  EXPECT_EQ((Swapped{1, 4, 7}.buffer(pages(3))), pages(1));
  EXPECT_EQ((Swapped{1, 4, 7}.buffer(Bytes{})), Bytes{});
}

TEST(WorkspaceBuffer, LeavesRoomForEveryStepAndForPagesThatComeOnDemand) {
  const Swapped roomy{0, 1, 4};
  const Swapped tight{0, 1, 3};
  const StepLayout one{roomy.graph, roomy.plan};
  const StepLayout other{tight.graph, tight.plan};
  EXPECT_EQ(workspace_buffer(std::array{&one, &one}, pages(100)), pages(1));
  EXPECT_EQ(workspace_buffer(std::array{&one, &other}, pages(100)), Bytes{});
  Swapped on_demand{0, 1, 4};
  on_demand.plan.residency = prefetch::Residency::kOnDemand;
  EXPECT_EQ(on_demand.buffer(), Bytes{});
}

// Where the workspace of `make b` lies, and what is said of it.
struct Placed {
  Placed(const Swapped& step, bool evicts) {
    NotingDevice device{evicts};
    const StepLayout layout{step.graph, step.plan};
    um::Ledger ledger{step.plan.budget};
    um::LimitedMemory near{device.memory(), ledger};
    StepSpace space{device, MemoryMode::kManaged, {.page = kPage}, {&layout}, {}, near, ledger};
    in_use = ledger.in_use();
    description = space.description();
    const prefetch::PinnedBlocks pinned{step.graph, layout.block_sizes,
                                        std::vector<std::byte*>(step.graph.data.size(), nullptr),
                                        space.pinned_buffer()};
    const auto memory = space.make_memory(layout, pinned);
    memory->begin_step();
    for (prefetch::Position p = 0; p < 3; ++p) {
      memory->begin_run(p);
      if (p == 1)
        workspace_is_paged = memory->workspace() < memory->address(DataId{0}) + extent &&
                             memory->workspace() >= memory->address(DataId{0});
      memory->end_run(p);
    }
    memory->end_step();
    peak = ledger.peak();
  }

  static constexpr std::size_t extent = 4 * kPage.count();  // of the slab; a lies at its begin
  Bytes in_use;
  Bytes peak;
  std::string description;
  bool workspace_is_paged = false;
};

TEST(WorkspaceBuffer, IsPlainMemoryWhereADriverMovesPages) {
  const Placed plain{Swapped{0, 1, 4}, false};
  EXPECT_EQ(plain.in_use, pages(1));
  EXPECT_EQ(plain.peak, pages(4));
  EXPECT_FALSE(plain.workspace_is_paged);
  EXPECT_NE(plain.description.find(", workspaces beside it)"), std::string::npos);
  const Placed tight{Swapped{0, 1, 3}, false};
  EXPECT_EQ(tight.in_use, Bytes{});
  EXPECT_EQ(tight.peak, pages(3));
  EXPECT_TRUE(tight.workspace_is_paged);
  EXPECT_NE(tight.description.find(", workspaces in it)"), std::string::npos);
}

TEST(WorkspaceBuffer, IsNotUsedWhereTheDeviceEvictsByItself) {
  const Placed host{Swapped{0, 1, 4}, true};
  EXPECT_EQ(host.in_use, Bytes{});
  EXPECT_TRUE(host.workspace_is_paged);
  EXPECT_EQ(host.description.find("workspaces"), std::string::npos);
}

}  // namespace
}  // namespace spillway
