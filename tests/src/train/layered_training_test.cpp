// Micro-batches that go through a network layer by layer.
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "nets/families/published_networks.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/planners/joint/layered_order.h"
#include "src/train/trainer.h"
#include "tests/src/printed_memory_mode.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

TrainerOptions layered_options(MemoryMode mode) {
  const bool is_resident = mode == MemoryMode::kResident;
  return {.network = nets::gpt("small", {.layers = 2, .heads = 2, .width = 64, .context = 8},
                               nets::tokens(8), 32),
          .step = {.batch = 4, .optimizer = AdamOptions{.weight_decay = 0.01F}},
          .memory = {.budget = is_resident ? "auto" : "min+30%", .mode = mode},
          .planning = {.planner = "capacity",
                       .state = is_resident ? StateRule::kAuto : StateRule::kFar,
                       .update = UpdateRule::kNear,
                       .micro_batches = {.size = 1}},
          .training = {.steps = 3, .evaluate_every = 0}};
}

// Returns a plan for the trainer's step in which `group` micro-batches pass a layer together.
prefetch::Plan layered_plan(const Trainer& trainer, std::size_t group) {
  const prefetch::TaskGraph& graph = trainer.graph();
  const prefetch::Profile profile = prefetch::model_profile(graph, prefetch::find_machine("h100"));
  const prefetch::Problem problem{.graph = graph,
                                  .profile = profile,
                                  .budget = trainer.plan().budget,
                                  .page = trainer.plan().page,
                                  .whole_blocks = true};
  const prefetch::LayeredOrder layered{problem};
  EXPECT_EQ(layered.micro_batches(), 4U);
  const std::vector<prefetch::TaskRun> given = prefetch::runs_in_order(graph);
  auto planned = prefetch::OffloadPlanner{problem}.plan(layered.order(given, group, {}));
  auto proved = prefetch::evaluated(problem, std::move(planned.value().plan));
  EXPECT_TRUE(proved);
  EXPECT_NE(proved->plan.runs[2].task, given[2].task);
  return std::move(proved.value().plan);
}

class LayerByLayer : public ::testing::TestWithParam<MemoryMode> {};

TEST_P(LayerByLayer, ChangesNoBit) {
  const auto weights = [](const TrainerOptions& options) {
    return Trainer{test::small_context(), options}.run().weights_sha256;
  };
  const std::string resident = weights(layered_options(MemoryMode::kResident));
  const test::TemporaryFolder folder;
  for (const std::size_t group : {2, 4}) {
    TrainerOptions options = layered_options(GetParam());
    options.planning.plan_file = folder.file("plan.json");
    const Trainer trainer{test::small_context(), layered_options(GetParam())};
    const prefetch::Plan plan = layered_plan(trainer, group);
    EXPECT_FALSE(plan.prefetches.empty());
    std::ofstream{options.planning.plan_file} << prefetch::to_json(plan, trainer.graph());
    EXPECT_EQ(weights(options), resident) << group;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, LayerByLayer,
                         ::testing::Values(MemoryMode::kManaged, MemoryMode::kCopy));

}  // namespace
}  // namespace spillway
