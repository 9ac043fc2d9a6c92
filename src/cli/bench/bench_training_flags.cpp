#include "src/cli/bench/bench_training_flags.h"

#include <nlohmann/json.hpp>

#include "src/cli/bench/bench_flags.h"
#include "src/cli/flags/complaint.h"
#include "src/cli/flags/number_checks.h"
#include "src/cli/flags/plan_flags.h"

namespace spillway::cli {
namespace {

constexpr const char* kNetworks = "What is trained";
constexpr const char* kMeasured = "Measuring";
constexpr const char* kOutput = "Output";
constexpr std::size_t kMax = 100'000;
constexpr std::size_t kQuickImage = 64;

}  // namespace

void BenchTrainingFlags::add_to(CLI::App& command) {
  add_networks_to(command);
  device.add_to(command);
  memory.add_space_to(command);
  memory.add_graph_to(command);
  add_measuring_to(command);
  command
      .add_option("--json", json,
                  "Write the measurements as JSON to this file, - for standard output")
      ->group(kOutput);
  command
      .add_option("--timelines", timelines,
                  "Write Chrome traces of the last step of each run at the network's batch size, "
                  "predicted and measured, and the plans to this folder")
      ->group(kOutput);
  add_budgets_to(command);
}

void BenchTrainingFlags::add_budgets_to(CLI::App& command) {
  command
      .add_option("--budgets", budgets,
                  "Budgets at the network's batch size, as for spillway train, separated by commas "
                  "(--quick: min+50%)")
      ->delimiter(',')
      ->check(check_budget)
      ->capture_default_str()
      ->group(kComparison);
}

void BenchTrainingFlags::add_networks_to(CLI::App& command) {
  command
      .add_option("--net", nets,
                  "Networks with their batch sizes: resnet50:16,vgg16:8 (default: resnet50:16; "
                  "--quick: resnet18:32 with images of 64x64)")
      ->check(check_nets)
      ->group(kNetworks);
  command
      .add_option("--image-size", image_size,
                  "Height and width of the images (default: the networks')")
      ->check(image_side())
      ->group(kNetworks);
  command
      .add_option(
          "--conv-algorithm", convolution_algorithm,
          "Convolution algorithms: direct, winograd, or auto. With auto the plan chooses, so "
          "losses differ and are not compared")
      ->check(CLI::IsMember({"direct", "winograd", "auto"}))
      ->capture_default_str()
      ->group(kNetworks);
}

void BenchTrainingFlags::add_measuring_to(CLI::App& command) {
  command
      .add_flag("--quick", quick,
                "Trial run with a small network and few steps; its figures mean nothing")
      ->group(kMeasured);
  command
      .add_option("--rounds", repeats.rounds,
                  "Maximum rounds, in each of which every run takes one turn (--quick: 1)")
      ->check(check_whole_number)
      ->check(CLI::Range(std::size_t{1}, kMax))
      ->capture_default_str()
      ->group(kMeasured);
  command
      .add_option("--steps", repeats.steps,
                  "Measured steps of each run, after the warm-up (--quick: 2)")
      ->check(check_whole_number)
      ->check(CLI::Range(std::size_t{1}, kMax))
      ->capture_default_str()
      ->group(kMeasured);
  command
      .add_option(
          "--deviation", repeats.deviation,
          "Stop early when the median absolute deviation of each run's steps is at most this "
          "part of their median")
      ->check(check_amount)
      ->capture_default_str()
      ->group(kMeasured);
  command
      .add_option("--seconds", repeats.seconds,
                  "Time limit in seconds, including profiling and planning")
      ->check(check_above_zero)
      ->capture_default_str()
      ->group(kMeasured);
}

void BenchTrainingFlags::complete(const CLI::App& command) {
  if (quick && nets.empty() && image_size == 0) image_size = kQuickImage;
  if (nets.empty()) nets = quick ? "resnet18:32" : "resnet50:16";
  if (quick && command.count("--rounds") == 0) repeats.rounds = 1;
  if (quick && command.count("--steps") == 0) repeats.steps = 2;
  if (quick && command.count("--budgets") == 0) budgets = {"min+50%"};
}

nlohmann::json BenchTrainingFlags::options(const CLI::App& command) const {
  nlohmann::json flags = flags_json(command);
  flags["net"] = nets;
  flags["image-size"] = image_size > 0 ? nlohmann::json(image_size) : nlohmann::json();
  flags["rounds"] = repeats.rounds;
  flags["steps"] = repeats.steps;
  flags["budgets"] = budgets;
  return flags;
}

TrainBenchOptions BenchTrainingFlags::measuring() const {
  return {.space = memory.space(),
          .rounds = repeats.rounds,
          .steps = repeats.steps,
          .max_time = Seconds{repeats.seconds}};
}

WorkloadFlags BenchTrainingFlags::workload(const NetAtBatch& at) const {
  WorkloadFlags options;
  options.net = at.net;
  options.batch = at.batch;
  options.sizes.image_size = image_size;
  options.convolution_algorithm = convolution_algorithm;
  return options;
}

bool BenchTrainingFlags::must_have_same_losses(bool is_host) const {
  return convolution_algorithm != "auto" && (is_host || device.deterministic);
}

}  // namespace spillway::cli
