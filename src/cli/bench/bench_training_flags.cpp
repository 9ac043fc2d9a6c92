#include "src/cli/bench/bench_training_flags.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>

#include "src/cli/bench/bench_command.h"
#include "src/cli/flags/flag_values.h"
#include "src/cli/flags/plan_flags.h"
#include "src/cli/flags/workload_flags.h"
#include "src/train/checkpoint/settings.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

// "resnet18:16" in its parts; nothing where no number follows the last colon.
std::optional<NetAtBatch> split(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const std::string_view number = text.substr(colon + 1);
  std::size_t batch = 0;
  const char* const end = number.data() + number.size();
  const auto [stop, status] = std::from_chars(number.data(), end, batch);
  if (status != std::errc{} || stop != end) return std::nullopt;
  if (kBatchRange.is_too_small(batch) || kBatchRange.is_too_large(batch)) return std::nullopt;
  return NetAtBatch{.net = std::string{text.substr(0, colon)}, .batch = batch};
}

[[noreturn]] void refuse(const std::string& text) {
  const std::optional<NetAtBatch> parts = split(text);
  throw um::Error{parts ? check_network(parts->net)
                        : "'" + text +
                              "' is no network at a batch: give NAME:BATCH, such as resnet18:16"};
}

constexpr const char* kNetworks = "What is trained";
constexpr const char* kMeasured = "Measuring";
constexpr const char* kOutput = "Output";
constexpr std::size_t kMax = 100'000;
constexpr std::size_t kQuickImage = 64;

}  // namespace

std::vector<NetAtBatch> parse_nets(const std::string& text) {
  std::vector<NetAtBatch> nets;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    std::size_t end = begin;
    std::optional<NetAtBatch> found;
    do {  // a comma may belong to the name
      end = text.find(',', end == begin ? begin : end + 1);
      found = split(std::string_view{text}.substr(begin, end - begin));
      if (found && !check_network(found->net).empty()) found.reset();
    } while (!found && end != std::string::npos);
    if (!found) refuse(text.substr(begin, text.find(',', begin) - begin));
    nets.push_back(*std::move(found));
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  return nets;
}

std::string check_nets(const std::string& text) {
  return complaint_of([&] { static_cast<void>(parse_nets(text)); });
}

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
      .add_option("--timeline", timelines,
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
      ->check(whole_number(1, kMax))
      ->capture_default_str()
      ->group(kMeasured);
  command
      .add_option("--steps", repeats.steps,
                  "Measured steps of each run, after the warm-up (--quick: 2)")
      ->check(whole_number(1, kMax))
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
