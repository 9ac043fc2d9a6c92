#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <optional>
#include <string>

#include "nets/network.h"
#include "src/step.h"

namespace spillway::cli {

/// The flags that say what is computed: --net, --batch and what changes the network.
struct WorkloadOptions {
  std::string net;
  std::size_t batch = 0;
  std::size_t image_size = 0;          ///< 0: the network's own
  std::optional<std::size_t> classes;  ///< default: 10, but those of a network from a file
  bool auxiliary_heads = false;
  std::string convolution_algorithm = "auto";
  float momentum = 0.9F;
  float weight_decay = 0;

  void add_to(CLI::App& app);
  /// --momentum and --weight-decay: what a step computes with, but neither its plan nor its time
  /// depends on.
  void add_optimizer_to(CLI::App& app);

  /// Builds it, or reads it from its file. Throws: um::Error when that is not possible, or the
  /// image too small.
  [[nodiscard]] nets::Network network() const;
  [[nodiscard]] StepOptions step() const;
};

/// Checks of CLI11's: a side of an image, a number of classes, the name of a network. A file passes
/// unread: a broken one is no bad usage.
[[nodiscard]] CLI::Range image_side();
[[nodiscard]] CLI::Range class_count();
[[nodiscard]] std::string check_network(const std::string& name);

}  // namespace spillway::cli
