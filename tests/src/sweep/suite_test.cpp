#include "src/sweep/suite.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "nets/network_catalogue.h"
#include "um/error.h"

namespace spillway {
namespace {

TEST(Suite, HasFourteenNetworksThatThereAre) {
  std::set<std::string> names;
  for (const SuiteNetwork& network : suite_networks()) {
    EXPECT_NO_THROW(static_cast<void>(nets::find_network(network.name))) << network.name;
    names.emplace(network.name);
  }
  EXPECT_EQ(names.size(), 14U);
}

TEST(Suite, HasEightTimesTheBatchOnTheLargestMachine) {
  const SuiteNetwork& network = find_suite_network("resnet152");
  EXPECT_EQ(suite_batch(network, "k40m"), 64U);
  EXPECT_EQ(suite_batch(network, "v100"), 64U);
  EXPECT_EQ(suite_batch(network, "h200"), 512U);
}

TEST(Suite, RefusesOtherNetworks) {
  EXPECT_THROW(static_cast<void>(find_suite_network("lenet")), um::Error);
}

TEST(Suite, AsksForTwelveBudgetsFromTheSmallestOn) {
  SuiteWorkloads workloads;
  const std::array networks{find_suite_network("alexnet")};
  const std::array machines{prefetch::find_machine("k40m"), prefetch::find_machine("h200")};
  const std::vector<Scenario> scenarios = suite_scenarios(networks, machines, workloads);
  const std::vector<SweepPoint> sweep_points = suite_sweep_points(scenarios);
  ASSERT_EQ(sweep_points.size(), 24U);
  const prefetch::NearNeed& need = scenarios[0].workload->need();
  EXPECT_EQ(sweep_points[0].budget, need.smallest);
  EXPECT_EQ(sweep_points[11].position, 11U);
  EXPECT_EQ(sweep_points[11].budget, need.resident);
  EXPECT_EQ(sweep_points[12].position, 0U);
  EXPECT_EQ(scenarios[1].batch, 4096U);
}

TEST(Suite, FixesAlgorithmsButWhereTheirChoiceIsJudged) {
  SuiteWorkloads workloads;
  const std::array networks{find_suite_network("vgg16")};
  const std::array machines{prefetch::find_machine("v100"), prefetch::find_machine("h200")};
  const auto max_algorithms = [](const Scenario& scenario) {
    std::size_t max = 0;
    for (const prefetch::Task& task : scenario.graph().tasks) {
      max = std::max(max, task.algorithms.size());
    }
    return max;
  };
  EXPECT_EQ(max_algorithms(suite_scenarios(networks, machines, workloads)[0]), 1U);
  const std::vector<Scenario> free = algorithm_scenarios(networks, machines, workloads);
  ASSERT_EQ(free.size(), 1U) << "it is judged on k40m and v100 only";
  EXPECT_EQ(max_algorithms(free[0]), 2U);
}

}  // namespace
}  // namespace spillway
