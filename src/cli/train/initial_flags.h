#pragma once

#include <optional>
#include <string>

#include "src/cli/flags/cli11.h"
#include "src/cli/flags/named_network.h"
#include "src/train/initial_values.h"
#include "src/train/state.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// Which parameters a training begins with.
struct InitialFlags {
  std::string weights;  ///< file of the first parameters; empty: they are drawn
  bool has_new_head = false;
  std::optional<Initialisation> rule;  ///< default: that of rule_for()
  bool has_zero_gamma = false;

  void add_to(CLI::App& command, const char* group);
  /// A training that `goes_on` has the head of its checkpoint, whatever is said of a new one.
  /// Throws: CLI::ValidationError when there is no file whose head would be new, or nothing that a
  /// rule would draw.
  void expect_fitting(bool goes_on) const;
  /// The rule that was given, or what suits the network of this name.
  [[nodiscard]] Initialisation rule_for(const std::string& network) const;
  /// Those that the network's ONNX file holds; none of another network, where the user wants
  /// others, or in a training that `goes_on`. Throws: um::Error.
  [[nodiscard]] TensorSource values_of(const OpenedNetwork& network, bool goes_on) const;

 private:
  void add_drawing_to(CLI::App& command, const char* group);
};

}  // namespace spillway::cli
