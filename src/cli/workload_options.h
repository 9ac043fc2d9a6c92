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
  std::string convolution_algorithm = "auto";
  float momentum = 0.9F;
  float weight_decay = 0;

  void add_to(CLI::App& app);

  /// Throws: um::Error when there is no such network, or the image is too small for it.
  [[nodiscard]] nets::Network network() const;
  [[nodiscard]] StepOptions step() const;
};

}  // namespace spillway::cli
