#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "prefetch/moves/sub_batch.h"
#include "src/plan/sub_batch_plans.h"

namespace spillway {

/// Throws: um::Error when `text` is none of what SubBatchChoice may hold.
void expect_sub_batch(const std::string& text);

/// How a user wants a batch cut: "off", "auto", or the largest number of samples in a sub-batch.
struct SubBatchChoice {
  std::string text = "off";

  [[nodiscard]] bool is_off() const { return text == "off"; }
  /// True when it leaves a batch of `batch` whole, whatever the planner says.
  [[nodiscard]] bool leaves_whole(std::size_t batch) const;
  /// True when it may stand for a choice made before: `kept` samples of `batch`, or the whole
  /// batch.
  [[nodiscard]] bool agrees_with(std::optional<std::size_t> kept, std::size_t batch) const;
  /// How `planner`'s batch is to be cut. Throws: um::Error when the number is more than `batch`;
  /// BudgetTooSmall when none works.
  [[nodiscard]] prefetch::SubBatches resolve(std::size_t batch, SubBatchPlanner& planner) const;
};

}  // namespace spillway
