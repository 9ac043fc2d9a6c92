#include "src/sweep/suite.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "nets/network_catalogue.h"
#include "prefetch/planners/catalogue.h"
#include "src/plan/budget.h"
#include "src/step/machine_size_model.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::Machine;

constexpr std::array<SuiteNetwork, 14> kNetworks{{{.name = "alexnet", .batch = 512},
                                                  {.name = "vgg16", .batch = 128},
                                                  {.name = "vgg19", .batch = 128},
                                                  {.name = "vgg101", .batch = 128},
                                                  {.name = "resnet18", .batch = 256},
                                                  {.name = "resnet34", .batch = 256},
                                                  {.name = "resnet50", .batch = 128},
                                                  {.name = "resnet101", .batch = 128},
                                                  {.name = "resnet152", .batch = 64},
                                                  {.name = "densenet121", .batch = 128},
                                                  {.name = "densenet201", .batch = 64},
                                                  {.name = "googlenet", .batch = 256},
                                                  {.name = "inception-v3", .batch = 128},
                                                  {.name = "inception-v4", .batch = 64}}};
constexpr std::array<std::string_view, 3> kMachines{"k40m", "v100", "h200"};
constexpr std::string_view kLargeMachine = "h200";
constexpr std::size_t kLargeMachineFactor = 8;

constexpr std::array<std::string_view, 2> kAlgorithmNetworks{"vgg16", "resnet34"};
constexpr std::array<std::string_view, 2> kAlgorithmMachines{"k40m", "v100"};

// The planners that are judged.
constexpr std::string_view kMovingPlanner = "fractional";
constexpr std::string_view kMixedPlanner = "joint";

using Place = std::tuple<std::string_view, std::string_view, std::size_t>;

// Network, machine and number of the budget of each of `points`, which must outlive the result.
std::set<Place> places(std::span<const Point> points) {
  std::set<Place> all;
  for (const Point& point : points)
    all.insert({point.key.net, point.key.machine, point.key.position});
  return all;
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::span<const SuiteNetwork> suite_networks() { return kNetworks; }

std::span<const std::string_view> suite_machines() { return kMachines; }

Strategy suite_moving() {
  return {.planner = &prefetch::find_planner(kMovingPlanner), .may_recompute = false};
}

Strategy suite_mixed() { return {.planner = &prefetch::find_planner(kMixedPlanner)}; }

const SuiteNetwork& find_suite_network(std::string_view name) {
  std::string names;
  for (const SuiteNetwork& network : kNetworks) {
    if (network.name == name) return network;
    names += (names.empty() ? "" : ", ") + std::string{network.name};
  }
  throw um::Error{"there is no network called '" + std::string{name} +
                  "' in the suite; there are " + names};
}

std::size_t suite_batch(const SuiteNetwork& network, std::string_view machine) {
  return network.batch * (machine == kLargeMachine ? kLargeMachineFactor : 1);
}

std::shared_ptr<const Workload> SuiteWorkloads::get(const std::string& net, std::size_t batch,
                                                    ConvolutionAlgorithm convolution) {
  std::shared_ptr<const Workload>& workload = made_[{net, {batch, convolution}}];
  if (!workload) {
    workload =
        std::make_shared<const Workload>(nets::build_network(net), MachineSizeModel{},
                                         StepOptions{.batch = batch, .convolution = convolution});
  }
  return workload;
}

std::vector<Scenario> suite_scenarios(std::span<const SuiteNetwork> networks,
                                      std::span<const Machine> machines,
                                      SuiteWorkloads& workloads) {
  std::vector<Scenario> scenarios;
  for (const SuiteNetwork& network : networks) {
    const std::string name{network.name};
    for (const Machine& machine : machines) {
      const std::size_t batch = suite_batch(network, machine.name);
      scenarios.push_back(make_scenario(
          name, batch, workloads.get(name, batch, ConvolutionAlgorithm::kDirect), machine));
    }
  }
  return scenarios;
}

std::vector<SweepPoint> suite_sweep_points(std::span<const Scenario> scenarios) {
  std::vector<SweepPoint> sweep_points;
  for (const Scenario& scenario : scenarios) {
    const std::vector<um::Bytes> budgets = linear_budgets(scenario.workload->need(), kSuiteBudgets);
    for (std::size_t p = 0; p < budgets.size(); ++p) {
      sweep_points.push_back({.scenario = &scenario, .position = p, .budget = budgets[p]});
    }
  }
  return sweep_points;
}

std::vector<Scenario> algorithm_scenarios(std::span<const SuiteNetwork> networks,
                                          std::span<const Machine> machines,
                                          SuiteWorkloads& workloads) {
  std::vector<Scenario> scenarios;
  for (const SuiteNetwork& network : networks) {
    if (!contains(kAlgorithmNetworks, network.name)) continue;
    const std::string name{network.name};
    for (const Machine& machine : machines) {
      if (!contains(kAlgorithmMachines, machine.name)) continue;
      scenarios.push_back(
          make_scenario(name, network.batch,
                        workloads.get(name, network.batch, ConvolutionAlgorithm::kAuto), machine));
    }
  }
  return scenarios;
}

std::vector<SweepPoint> algorithm_sweep_points(std::span<const Scenario> scenarios) {
  std::vector<SweepPoint> sweep_points;
  for (const Scenario& scenario : scenarios) {
    const um::Bytes budget = Budget::parse("min+15%").resolve(scenario.workload->need(), {});
    sweep_points.push_back({.scenario = &scenario, .position = 0, .budget = budget});
  }
  return sweep_points;
}

bool has_whole_suite(std::span<const Point> points) {
  const std::set<Place> there = places(points);
  for (const SuiteNetwork& network : kNetworks) {
    for (const std::string_view machine : kMachines) {
      for (std::size_t p = 0; p < kSuiteBudgets; ++p) {
        if (!there.contains({network.name, machine, p})) return false;
      }
    }
  }
  return true;
}

bool has_all_algorithm_points(std::span<const Point> points) {
  const std::set<Place> there = places(points);
  for (const std::string_view network : kAlgorithmNetworks) {
    for (const std::string_view machine : kAlgorithmMachines) {
      if (!there.contains({network, machine, 0})) return false;
    }
  }
  return true;
}

Scenario large_scenario(SuiteWorkloads& workloads) {
  const std::string name = "resnet:6,32,787,6";
  constexpr std::size_t kBatch = 16;
  return make_scenario(name, kBatch, workloads.get(name, kBatch, ConvolutionAlgorithm::kDirect),
                       prefetch::find_machine("v100"));
}

SweepPoint large_sweep_point(const Scenario& scenario) {
  const um::Bytes budget = Budget::parse("min+10%").resolve(scenario.workload->need(), {});
  return {.scenario = &scenario, .position = 0, .budget = budget};
}

}  // namespace spillway
