#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "prefetch/planner.h"
#include "src/bench/train/train_comparison.h"
#include "src/bench/train/train_row.h"
#include "src/bench/train/train_strategy.h"
#include "um/bytes.h"

namespace spillway {

/// Batches around `batch`, ascending: a quarter, a half, one, one and a half, and twice of it,
/// rounded down, without those that round to nothing or to one that is there already. With `few`,
/// only a half, one and twice. `batch` itself is always there, though not always in the middle.
[[nodiscard]] std::vector<std::size_t> batches_around(std::size_t batch, bool few);

/// The budget under which near memory runs out at the `middle`-th of batches that need `needs`:
/// half way from the resident need of the batch before it to its own; of the first one, half of
/// what it needs. At least the smallest feasible budget of the largest batch, where that is still
/// less than the middle batch needs. Requires: `needs` ascends by batch, `middle` < its size.
[[nodiscard]] um::Bytes budget_at_middle(std::span<const prefetch::NearNeed> needs,
                                         std::size_t middle);

/// A budget, and how the user said it.
struct NamedBudget {
  std::string text;
  um::Bytes size;
};

/// Adds the rows of a series over batches, each in all `strategies` and resident, under one budget.
void add_batch_series(TrainComparison& comparison, std::span<const TrainSubject* const> batches,
                      std::span<const TrainStrategy> strategies, const NamedBudget& budget);

/// Adds the resident row of `subject`, then all `strategies` at each budget. Resident ones among
/// these are left out.
void add_budget_series(TrainComparison& comparison, TrainSeries series, const TrainSubject& subject,
                       std::span<const TrainStrategy> strategies,
                       std::span<const NamedBudget> budgets);

}  // namespace spillway
