#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/bench/repetition.h"
#include "src/bench/train/train_bench.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/memory_flags.h"
#include "src/cli/flags/workload_flags.h"

namespace spillway::cli {

/// A network, by the name or file that the user gives, at a batch size.
struct NetAtBatch {
  std::string net;
  std::size_t batch = 1;
  friend bool operator==(const NetAtBatch&, const NetAtBatch&) = default;
};

/// Reads "resnet18:16,resnet:2,2,2,2:8": names of families have colons and commas of their own.
/// Throws: um::Error that says what is none.
[[nodiscard]] std::vector<NetAtBatch> parse_nets(const std::string& text);

/// A check of CLI11's.
[[nodiscard]] std::string check_nets(const std::string& text);

/// How often a training is measured, and until when.
struct TrainRepeats {
  std::size_t rounds = 3;
  std::size_t steps = 3;  ///< counted, of a round
  double deviation = 0.03;
  double seconds = 600;
};

/// The flags that `bench train` and `bench planners` share. What `budgets` are before add_to() is
/// their default.
struct BenchTrainingFlags {
  /// The heading in the help of flags that say what is compared.
  static constexpr const char* kComparison = "What is compared";

  std::string nets;  ///< as parse_nets() reads them; empty: the default
  std::size_t image_size = 0;
  std::string convolution_algorithm = "direct";
  DeviceFlags device;
  MemoryFlags memory;
  TrainRepeats repeats;
  std::vector<std::string> budgets;  ///< at the network's batch
  std::string json;
  std::string timelines;
  bool quick = false;

  void add_to(CLI::App& command);

  /// Fills in what `command` was not given.
  void complete(const CLI::App& command);
  /// For the bench file: each flag as given, or as it was filled in.
  [[nodiscard]] nlohmann::json options(const CLI::App& command) const;

  [[nodiscard]] std::vector<NetAtBatch> networks() const { return parse_nets(nets); }
  [[nodiscard]] Settling settling() const { return {.deviation = repeats.deviation}; }
  [[nodiscard]] TrainBenchOptions measuring() const;
  /// What builds `at`.
  [[nodiscard]] WorkloadFlags workload(const NetAtBatch& at) const;
  /// True when the losses may depend on neither budget nor plan: no choice of algorithms is left,
  /// and the device gives the same bits each time.
  [[nodiscard]] bool must_have_same_losses(bool is_host) const;

 private:
  void add_networks_to(CLI::App& command);
  void add_measuring_to(CLI::App& command);
  void add_budgets_to(CLI::App& command);
};

}  // namespace spillway::cli
