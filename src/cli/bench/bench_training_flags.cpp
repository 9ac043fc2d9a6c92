#include "src/cli/bench/bench_training_flags.h"

#include <nlohmann/json.hpp>

#include "src/cli/bench/bench_flags.h"
#include "src/cli/flags/complaint.h"
#include "src/cli/flags/number_checks.h"
#include "src/cli/flags/plan_flags.h"

namespace spillway::cli {
namespace {

constexpr const char* kNetworks = "What is trained";
constexpr const char* kMeasuring = "Measuring";
constexpr const char* kOutput = "Output";
constexpr std::size_t kMax = 100'000;
constexpr std::size_t kQuickImage = 64;

}  // namespace

void BenchTrainingFlags::add_to(CLI::App& command) {
  add_networks_to(command);
  context.add_to(command);
  memory.add_space_to(command);
  add_measuring_to(command);
  command.add_option("--json", json, "Write what was measured to this file, - for stdout")
      ->group(kOutput);
  command
      .add_option("--timelines", timelines,
                  "Write the last step of each run at the network's batch into this folder, "
                  "predicted and measured, as Chrome traces, and the plans")
      ->group(kOutput);
  add_budgets_to(command);
}

void BenchTrainingFlags::add_budgets_to(CLI::App& command) {
  command
      .add_option("--budgets", budgets,
                  "Budgets at the network's batch, as for spillway train, with commas between them "
                  "(with --quick min+50%)")
      ->delimiter(',')
      ->check(check_budget)
      ->capture_default_str()
      ->group(kComparison);
}

void BenchTrainingFlags::add_networks_to(CLI::App& command) {
  command
      .add_option("--net", nets,
                  "Networks, each with its batch, as resnet50:16,vgg16:8 (default: resnet50:16; "
                  "with --quick resnet18:32, images of 64x64)")
      ->check(check_nets)
      ->group(kNetworks);
  command
      .add_option("--image-size", image_size, "Side of the square images (default: the networks')")
      ->check(image_side())
      ->group(kNetworks);
  command
      .add_option("--conv-algorithm", convolution_algorithm,
                  "Convolution algorithms: direct, winograd, or auto, with which plans may choose, "
                  "so that losses depend on the plan and are not compared")
      ->check(CLI::IsMember({"direct", "winograd", "auto"}))
      ->capture_default_str()
      ->group(kNetworks);
}

void BenchTrainingFlags::add_measuring_to(CLI::App& command) {
  command
      .add_flag("--quick", quick,
                "A small network, few runs and few steps, to see that it works; no figures to show "
                "to anybody")
      ->group(kMeasuring);
  command
      .add_option("--rounds", repeats.rounds,
                  "Let all runs take turns at most so often (with --quick 1)")
      ->check(check_whole_number)
      ->check(CLI::Range(std::size_t{1}, kMax))
      ->capture_default_str()
      ->group(kMeasuring);
  command
      .add_option("--steps", repeats.steps,
                  "Steps of a run that count, after those that warm up (with --quick 2)")
      ->check(check_whole_number)
      ->check(CLI::Range(std::size_t{1}, kMax))
      ->capture_default_str()
      ->group(kMeasuring);
  command
      .add_option("--deviation", repeats.deviation,
                  "End before the last round when the steps of each run deviate by no more than "
                  "this part of their median (median absolute deviation)")
      ->check(check_amount)
      ->capture_default_str()
      ->group(kMeasuring);
  command
      .add_option("--seconds", repeats.seconds,
                  "Begin no further run after so many seconds, those of measuring and planning "
                  "included")
      ->check(check_above_zero)
      ->capture_default_str()
      ->group(kMeasuring);
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
  options.image_size = image_size;
  options.convolution_algorithm = convolution_algorithm;
  return options;
}

bool BenchTrainingFlags::must_have_same_losses(bool is_host) const {
  return convolution_algorithm != "auto" && (is_host || context.deterministic);
}

}  // namespace spillway::cli
