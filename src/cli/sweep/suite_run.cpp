#include "src/cli/sweep/suite_run.h"

#include <array>
#include <span>
#include <utility>

#include "src/cli/flags/sweep_lists.h"
#include "src/cli/terminal/time_left_line.h"
#include "src/sweep/suite.h"
#include "src/sweep/sweep.h"

namespace spillway::cli {
namespace {

constexpr double kNoise = 0.1;            // G7's
constexpr std::size_t kSmallStep = 1000;  // tasks, G5's
constexpr std::size_t kTimedAlone = 20;

std::vector<SuiteNetwork> find_networks(const std::vector<std::string>& names) {
  if (names.empty()) return {suite_networks().begin(), suite_networks().end()};
  std::vector<SuiteNetwork> networks;
  networks.reserve(names.size());
  for (const std::string& name : names) networks.push_back(find_suite_network(name));
  return networks;
}

std::vector<prefetch::Machine> find_suite_machines(const std::vector<std::string>& names) {
  if (!names.empty()) return find_machines(names);
  return find_machines({suite_machines().begin(), suite_machines().end()});
}

class SuiteSweep {
 public:
  SuiteSweep(int threads, std::stop_token stop) : threads_{threads}, stop_{std::move(stop)} {}

  [[nodiscard]] std::vector<Point> operator()(const std::string& what,
                                              std::span<const SweepPoint> sweep_points,
                                              std::span<const Strategy> strategies) const {
    TimeLeftLine line{what};
    return sweep(
        sweep_points, strategies,
        {.threads = threads_,
         .noise = kNoise,
         .on_progress =
             [&](const SweepProgress& progress) { line.show(progress.done, progress.latest); }},
        stop_);
  }

 private:
  int threads_;
  std::stop_token stop_;
};

}  // namespace

SuiteResult run_suite(const SuiteRequest& request, const std::stop_token& stop) {
  const std::vector<SuiteNetwork> networks = find_networks(request.networks);
  const std::vector<prefetch::Machine> machines = find_suite_machines(request.machines);
  const SuiteSweep evaluate_all{request.threads, stop};
  const std::array mixed{suite_mixed()};
  SuiteWorkloads workloads;
  const std::vector<Scenario> scenarios = suite_scenarios(networks, machines, workloads);
  const std::vector<Scenario> with_algorithms = algorithm_scenarios(networks, machines, workloads);

  SuiteResult result;
  const std::array both{suite_moving(), suite_mixed()};
  const std::vector<SweepPoint> sweep_points = suite_sweep_points(scenarios);
  const std::vector<Point> points = evaluate_all("suite", sweep_points, both);
  for (std::size_t i = 0; i < points.size(); ++i) {
    (i % 2 == 0 ? result.moving : result.mixed).push_back(points[i]);
  }
  if (!stop.stop_requested()) {
    time_slowest_alone(sweep_points, suite_mixed(), result.mixed, kSmallStep, kTimedAlone);
  }
  result.algorithms = evaluate_all("algorithms", algorithm_sweep_points(with_algorithms), mixed);
  if (request.networks.empty() && !stop.stop_requested()) {
    const Scenario large = large_scenario(workloads);
    result.large = evaluate_all("large step", std::array{large_sweep_point(large)}, mixed);
  }
  result.goals = judge_goals({.moving = result.moving,
                              .mixed = result.mixed,
                              .algorithms = result.algorithms,
                              .large = result.large});
  return result;
}

}  // namespace spillway::cli
