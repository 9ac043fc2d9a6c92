#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "nets/network.h"
#include "src/cli/flags/cli11.h"
#include "src/cli/flags/network_size_flags.h"
#include "src/cli/flags/optimizer_flags.h"
#include "src/step/step.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// The flags that say what is computed: --net, --batch, --optimizer and what changes the
/// network.
struct WorkloadFlags {
  std::string net;
  std::size_t batch = 0;
  NetworkSizeFlags sizes;  ///< 10 classes by default, but a file's or a vocabulary's own
  bool auxiliary_heads = false;
  std::optional<float> dropout;  ///< default: the network's
  std::string convolution_algorithm = "auto";
  std::string attention = "auto";
  OptimizerFlags optimizer;
  double average_decay = 0;         ///< 0: there is no average
  std::vector<std::string> frozen;  ///< patterns of layers' names
  float label_smoothing = 0;

  void add_to(CLI::App& app);

  /// Builds it, or reads it from its file. Throws: um::Error when that is not possible, or the
  /// image too small.
  [[nodiscard]] nets::Network network() const;
  /// The same of what open_named_network() has read of --net. Throws: likewise.
  [[nodiscard]] nets::Network network(const nets::CatalogueEntry& entry) const;
  [[nodiscard]] StepOptions step() const;
  /// --label-smoothing, which neither plans nor times depend on.
  void add_smoothing_to(CLI::App& app, const char* group);
};

/// Throws: um::Error when `name` is a file's, to which --aux-heads does not apply.
void expect_built_in(const std::string& name);

/// A check of CLI11's: the name of a network. A file passes unread: a broken one is no bad usage.
[[nodiscard]] std::string check_network(const std::string& name);

}  // namespace spillway::cli
