#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prefetch/files/machine.h"
#include "src/step/step.h"
#include "src/sweep/point.h"
#include "src/sweep/scenario.h"

namespace spillway {

/// A network of suite S, and its batch; eight times that on h200.
struct SuiteNetwork {
  std::string_view name;
  std::size_t batch;
};

/// Suite S: fourteen networks on three machines under twelve budgets each, linear from the smallest
/// feasible one (p = 0) to the resident need (p = 11).
inline constexpr std::size_t kSuiteBudgets = 12;
[[nodiscard]] std::span<const SuiteNetwork> suite_networks();
[[nodiscard]] std::span<const std::string_view> suite_machines();

/// The strategy that the goals for plans that only move judge.
[[nodiscard]] Strategy suite_moving();
/// The strategy that all other goals judge.
[[nodiscard]] Strategy suite_mixed();

/// The network of the suite called `name`. Throws: um::Error that lists them.
[[nodiscard]] const SuiteNetwork& find_suite_network(std::string_view name);

/// The batch of the suite's `network` on `machine`.
[[nodiscard]] std::size_t suite_batch(const SuiteNetwork& network, std::string_view machine);

/// Workloads of networks with their published classes and sizes of machines that are not here, each
/// made once.
class SuiteWorkloads {
 public:
  [[nodiscard]] std::shared_ptr<const Workload> get(const std::string& net, std::size_t batch,
                                                    ConvolutionAlgorithm convolution);

 private:
  std::map<std::pair<std::string, std::pair<std::size_t, ConvolutionAlgorithm>>,
           std::shared_ptr<const Workload>>
      made_;
};

/// One situation for each network and machine; all convolutions use their first algorithm.
[[nodiscard]] std::vector<Scenario> suite_scenarios(std::span<const SuiteNetwork> networks,
                                                    std::span<const prefetch::Machine> machines,
                                                    SuiteWorkloads& workloads);

/// The suite's budgets in each situation.
[[nodiscard]] std::vector<SweepPoint> suite_sweep_points(std::span<const Scenario> scenarios);

/// Where the joint choice of convolution algorithms is judged: VGG-16 and ResNet-34 as far as they
/// are among `networks`, on K40m and V100 as far as they are among `machines`.
[[nodiscard]] std::vector<Scenario> algorithm_scenarios(std::span<const SuiteNetwork> networks,
                                                        std::span<const prefetch::Machine> machines,
                                                        SuiteWorkloads& workloads);

/// 15 % of the way from the smallest feasible budget to the resident need, in each situation.
[[nodiscard]] std::vector<SweepPoint> algorithm_sweep_points(std::span<const Scenario> scenarios);

/// True when `points` hold every network on every machine under every budget of suite S.
[[nodiscard]] bool has_whole_suite(std::span<const Point> points);
/// True when `points` hold everything in which the choice of convolution algorithms is judged.
[[nodiscard]] bool has_all_algorithm_points(std::span<const Point> points);

/// A step of more than eight thousand tasks on V100: SuperNeurons' ResNet-2500 at batch 16.
[[nodiscard]] Scenario large_scenario(SuiteWorkloads& workloads);
/// A tenth of the way from its smallest feasible budget to its resident need: a tenth of that need
/// is less than its parameters, their gradients and momentum take.
[[nodiscard]] SweepPoint large_sweep_point(const Scenario& scenario);

}  // namespace spillway
