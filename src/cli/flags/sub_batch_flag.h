#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "prefetch/moves/sub_batch.h"
#include "src/cli/flags/cli11.h"
#include "src/plan/sub_batch_plans.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// The flag --sub-batch of `spillway plan` and `spillway train`: off, auto, or a number of samples.
struct SubBatchOption {
  std::string text = "off";

  void add_to_plan(CLI::App& app);
  void add_to_train(CLI::App& app);
  [[nodiscard]] bool is_off() const { return text == "off"; }
  /// True when it leaves a batch of `batch` whole, whatever the planner says.
  [[nodiscard]] bool leaves_whole(std::size_t batch) const;
  /// True when it may stand for a choice made before: `kept` samples of `batch`, or the whole
  /// batch.
  [[nodiscard]] bool agrees_with(std::optional<std::size_t> kept, std::size_t batch) const;
  /// How `planner`'s batch is to be cut. Throws: um::Error when the number is more than `batch`;
  /// BudgetTooSmall when none works.
  [[nodiscard]] prefetch::SubBatches resolve(std::size_t batch, SubBatchPlanner& planner) const;

 private:
  void add_to(CLI::App& app, const std::string& help);
};

}  // namespace spillway::cli
