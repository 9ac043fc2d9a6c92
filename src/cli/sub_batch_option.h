#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

#include "prefetch/sub_batch.h"
#include "src/sub_batch_plans.h"

namespace spillway::cli {

/// The flag --sub-batch of `spillway plan`: off, auto, or a number of samples.
struct SubBatchOption {
  std::string text = "off";

  void add_to(CLI::App& app);
  [[nodiscard]] bool is_off() const { return text == "off"; }
  /// How `planner`'s batch is to be cut. Throws: um::Error when the number is more than `batch`;
  /// BudgetTooSmall when none works.
  [[nodiscard]] prefetch::SubBatches resolve(std::size_t batch, SubBatchPlanner& planner) const;
};

}  // namespace spillway::cli
