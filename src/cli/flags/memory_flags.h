#pragma once

#include <optional>
#include <string>

#include "src/cli/flags/cli11.h"
#include "src/plan/plans.h"
#include "src/train/trainer_options.h"
#include "um/options.h"

namespace spillway::cli {

/// The flags that say where tensors live: --memory, --far, --link-bandwidth, --paging and their
/// kin.
struct MemoryFlags {
  std::string memory = "auto";
  std::string far = "ram";  ///< "auto" before add_space_to(): for what can choose, MemoryOptions
  std::string far_checksums = "on";
  std::string link_bandwidth;
  std::string link_latency;
  std::string fault_latency;
  std::string paging = "auto";
  bool oversubscribe = false;
  std::string discard = "auto";
  std::string graph = "auto";

  /// --memory alone, for what runs on a device.
  void add_mode_to(CLI::App& app);
  /// --memory alone, for what is planned without a device, which suits every mode.
  void add_planned_mode_to(CLI::App& app);
  /// Everything else: what it takes to run.
  void add_space_to(CLI::App& app);
  /// The same without what is a GPU's alone, for what runs on the host whatever the machine has.
  void add_host_space_to(CLI::App& app);

  /// How a GPU is given the steps: for what trains.
  void add_graph_to(CLI::App& app);

  /// Prints a note about each flag, of these or of PlanFlags, that `command` was given and that
  /// does nothing with its --memory. It is not refused: modes are compared by changing one word.
  void note_idle_flags(const CLI::App& command) const;

  /// The mode asked for, by --memory or a flag that only one mode has; nullopt: what suits the
  /// device.
  [[nodiscard]] std::optional<MemoryMode> mode() const;
  /// The same where no device is known: managed unless another one is asked for.
  [[nodiscard]] MemoryMode planned_mode() const { return mode().value_or(MemoryMode::kManaged); }
  /// Far memory, link and paging; sizes are not set.
  [[nodiscard]] um::ManagedOptions space() const;
  /// The same without a budget, and with a far file where RAM has no room, if the user lets that be
  /// chosen.
  [[nodiscard]] MemoryOptions options() const;
  /// Takes this folder for a far file, as --far does. Does nothing for an empty name, and warns of
  /// a folder that has gone.
  void restore_far_folder(const std::string& folder);
  /// Throws: um::Error when there can be no far file where the user wants it.
  void expect_far() const;
};

/// Complains about what is no rate of a link; a check of CLI11's.
[[nodiscard]] std::string check_bandwidth(const std::string& text);

}  // namespace spillway::cli
