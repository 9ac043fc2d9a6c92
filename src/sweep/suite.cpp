#include "src/sweep/suite.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "nets/catalogue.h"
#include "prefetch/planners/catalogue.h"
#include "src/budget.h"
#include "src/model_sizing.h"
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
        std::make_shared<const Workload>(nets::build_network(net), ModelSizing{},
                                         StepOptions{.batch = batch, .convolution = convolution});
  }
  return workload;
}

std::vector<Situation> suite_situations(std::span<const SuiteNetwork> networks,
                                        std::span<const Machine> machines,
                                        SuiteWorkloads& workloads) {
  std::vector<Situation> situations;
  for (const SuiteNetwork& network : networks) {
    const std::string name{network.name};
    for (const Machine& machine : machines) {
      const std::size_t batch = suite_batch(network, machine.name);
      situations.push_back(make_situation(
          name, batch, workloads.get(name, batch, ConvolutionAlgorithm::kDirect), machine));
    }
  }
  return situations;
}

std::vector<Cell> suite_cells(std::span<const Situation> situations) {
  std::vector<Cell> cells;
  for (const Situation& situation : situations) {
    const std::vector<um::Bytes> budgets =
        linear_budgets(situation.workload->need(), kSuiteBudgets);
    for (std::size_t p = 0; p < budgets.size(); ++p) {
      cells.push_back({.situation = &situation, .position = p, .budget = budgets[p]});
    }
  }
  return cells;
}

std::vector<Situation> algorithm_situations(std::span<const SuiteNetwork> networks,
                                            std::span<const Machine> machines,
                                            SuiteWorkloads& workloads) {
  std::vector<Situation> situations;
  for (const SuiteNetwork& network : networks) {
    if (!contains(kAlgorithmNetworks, network.name)) continue;
    const std::string name{network.name};
    for (const Machine& machine : machines) {
      if (!contains(kAlgorithmMachines, machine.name)) continue;
      situations.push_back(
          make_situation(name, network.batch,
                         workloads.get(name, network.batch, ConvolutionAlgorithm::kAuto), machine));
    }
  }
  return situations;
}

std::vector<Cell> algorithm_cells(std::span<const Situation> situations) {
  std::vector<Cell> cells;
  for (const Situation& situation : situations) {
    const um::Bytes budget = Budget::parse("min+15%").resolve(situation.workload->need(), {});
    cells.push_back({.situation = &situation, .position = 0, .budget = budget});
  }
  return cells;
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

Situation large_situation(SuiteWorkloads& workloads) {
  const std::string name = "resnet:6,32,787,6";
  constexpr std::size_t kBatch = 16;
  return make_situation(name, kBatch, workloads.get(name, kBatch, ConvolutionAlgorithm::kDirect),
                        prefetch::find_machine("v100"));
}

Cell large_cell(const Situation& situation) {
  const um::Bytes budget = Budget::parse("min+10%").resolve(situation.workload->need(), {});
  return {.situation = &situation, .position = 0, .budget = budget};
}

}  // namespace spillway
