#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

#include "nets/network.h"
#include "src/step.h"

namespace spillway::cli {

/// The flags that say what is computed: --net, --batch and what changes the network.
struct WorkloadOptions {
  std::string net;
  std::size_t batch = 0;
  std::size_t image_size = 0;  ///< 0: the network's own
  std::size_t classes = 10;
  bool auxiliary_heads = false;
  std::string convolution_algorithm = "auto";
  float momentum = 0.9F;
  float weight_decay = 0;

  void add_to(CLI::App& app);
  /// --momentum and --weight-decay: what a step computes with, but neither its plan nor its time
  /// depends on.
  void add_optimizer_to(CLI::App& app);

  /// Throws: um::Error when the image is too small for the network.
  [[nodiscard]] nets::Network network() const;
  [[nodiscard]] StepOptions step() const;
};

/// Checks of CLI11's: a number of classes, the name of a network.
[[nodiscard]] CLI::Range class_count();
[[nodiscard]] std::string check_network(const std::string& name);

}  // namespace spillway::cli
