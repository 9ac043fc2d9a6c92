#include "src/profile/min_slab.h"

#include <gtest/gtest.h>

#include "nets/families/network_catalogue.h"
#include "prefetch/files/machine.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/runtime/step_layout.h"
#include "src/plan/plans.h"
#include "src/step/machine_size_model.h"

namespace spillway {
namespace {

using um::Bytes;

class LeastSlab : public testing::Test {
 protected:
  // Of the slab in which a plan's training step runs.
  [[nodiscard]] Bytes extent(const char* planner, Bytes budget) const {
    const Plans plans =
        make_plans(workload, profile, budget,
                   {.memory = MemoryMode::kManaged, .planner = &prefetch::find_planner(planner)});
    return prefetch::StepLayout{workload.training().graph, plans.training.front()}.placement.extent;
  }

  nets::Network net = nets::build_network("vgg16", {.image = nets::Shape{3, 64, 64}});
  Workload workload{net, MachineSizeModel{}, {.batch = 8}};
  prefetch::Profile profile =
      prefetch::model_profile(workload.training().graph, prefetch::find_machine("v100"));
};

TEST_F(LeastSlab, IsWhatTheLargestTaskNeeds) {
  const prefetch::BlockSizes block_sizes{workload.training().graph, workload.page()};
  EXPECT_EQ(min_slab(workload) + block_sizes.pinned(),
            near_need(workload.training().graph, block_sizes).smallest);
}

TEST_F(LeastSlab, IsNoMoreThanAnyPlanTakes) {
  const prefetch::NearNeed& need = workload.need();
  const Bytes middle{(need.smallest.count() + need.resident.count()) / 2};
  for (const char* planner : {"joint", "capacity", "superneurons", "recompute", "vdnn-all"}) {
    for (const Bytes budget : {middle, need.resident}) {
      EXPECT_GE(extent(planner, budget), min_slab(workload)) << planner;
    }
  }
}

}  // namespace
}  // namespace spillway
