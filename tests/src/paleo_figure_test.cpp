// UM-Chainer's Figure 8: VGG-16's step by OOC-Paleo as the throughput of data transfer grows.

#include <gtest/gtest.h>

#include <string>

#include "nets/families/network_catalogue.h"
#include "prefetch/bounds/paleo.h"
#include "prefetch/files/machine.h"
#include "prefetch/planners/catalogue.h"
#include "src/plan/plans.h"
#include "src/program/machine_size_model.h"

namespace spillway::prefetch {

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(PaleoStrategy strategy, std::ostream* out) {
  *out << (strategy == PaleoStrategy::kVdnnLike ? "VdnnLike" : "CapacityBased");
}

}  // namespace spillway::prefetch

namespace spillway {
namespace {

using prefetch::PaleoStrategy;

class PaleoFigure : public testing::TestWithParam<PaleoStrategy> {
 protected:
  PaleoFigure() {
    const PlanRequest request{.memory = MemoryMode::kManaged,
                              .planner = &prefetch::find_planner("on-demand")};
    plan = plan_step(workload.training_to_plan(), profile, workload.need().smallest, request).plan;
  }
  // Time of a step with a link of so many GB/s, over the time of its arithmetic.
  [[nodiscard]] double normalized_time(double gigabytes_per_second) {
    profile.link.offload = profile.link.prefetch = um::Bandwidth{gigabytes_per_second * 1e9};
    return 1 / paleo_step(workload.training().graph, profile, plan, GetParam()).utilization();
  }

  nets::Network net = nets::build_network("vgg16");
  Workload workload{net, MachineSizeModel{}, {.batch = 128}};
  prefetch::Profile profile =
      prefetch::model_profile(workload.training().graph, prefetch::find_machine("v100"));
  prefetch::Plan plan;
};

TEST_P(PaleoFigure, NormalizedTimeConvergesToOneAsThroughputGrows) {
  double previous = normalized_time(8);
  EXPECT_GT(previous, 1.2) << "PCI Express is the bottleneck";
  std::string curve = std::to_string(previous);
  for (double rate = 16; rate <= 16384; rate *= 2) {
    const double now = normalized_time(rate);
    EXPECT_LE(now, previous) << "at " << rate << " GB/s";
    previous = now;
    curve += " " + std::to_string(now);
  }
  EXPECT_LT(previous, 1.01);
  RecordProperty("normalized_times_from_8_GBps_doubling", curve);
}

INSTANTIATE_TEST_SUITE_P(Strategies, PaleoFigure,
                         testing::Values(PaleoStrategy::kVdnnLike, PaleoStrategy::kCapacityBased));

}  // namespace
}  // namespace spillway
