#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/bench/repetition.h"
#include "src/bench/train/train_strategy.h"
#include "um/bytes.h"

namespace spillway {

/// What changes from row to row.
enum class TrainSeries {
  kBatch,   ///< the batch, under one budget
  kBudget,  ///< the budget, at one batch
  kPlanner  ///< the planner, at one batch
};

/// "batch", "budget", "planner".
[[nodiscard]] std::string_view to_string(TrainSeries series);

/// What a row is about.
struct TrainRowKey {
  TrainSeries series = TrainSeries::kBatch;
  std::string net;
  std::size_t image_size = 0;
  std::size_t batch = 0;
  TrainStrategy strategy;
  std::string budget;  ///< as the user gave it: "40%", "512 MiB"
  um::Bytes budget_bytes;
  um::Bytes resident_bytes;  ///< what a run needs in which nothing moves

  /// True when both rows are compared with each other: all but the strategy is the same.
  [[nodiscard]] bool competes_with(const TrainRowKey& other) const;
};

/// What a step of the row came to; means over the steps, but for the timing and the peak.
struct TrainMeasurement {
  TimingSummary step;
  um::Bytes near_peak;
  um::Bytes bytes_in;
  um::Bytes bytes_out;
  std::uint64_t faults = 0;
  Seconds stalled{0};
};

/// A step of the same network and batch with all in near memory, run about the same time.
struct ResidentStep {
  Seconds time{0};
  bool is_measured = false;  ///< else the sum of its tasks' times
};

/// One line of the comparison: a strategy at a budget.
struct TrainRow {
  TrainRowKey key;
  std::optional<ResidentStep> resident;
  std::optional<Seconds> predicted;             ///< there where there is a plan
  std::optional<TrainMeasurement> measurement;  ///< not there: it failed
  std::string failure;                          ///< a sentence

  [[nodiscard]] std::optional<double> images_per_second() const;
  /// The median step over the resident one.
  [[nodiscard]] std::optional<double> ratio() const;
  /// The predicted step over the median one.
  [[nodiscard]] std::optional<double> predicted_over_measured() const;
};

/// As "rows" of format spillway-bench, version 2, have it.
[[nodiscard]] nlohmann::json to_json(const TrainRow& row);
[[nodiscard]] nlohmann::json to_json(std::span<const TrainRow> rows);
/// Reads a row that to_json() wrote, also in a program with other planners; means may be missing.
/// Throws: um::Error that names the place of the mistake.
[[nodiscard]] TrainRow read_train_row(const prefetch::JsonView& row);

/// For each row, whether its time can be compared: its step has settled, and so have the resident
/// steps of its network, image size and batch among `rows`, which its ratio is over.
/// Complexity: O(rows^2).
[[nodiscard]] std::vector<bool> find_settled(std::span<const TrainRow> rows);

/// For each row, whether it is the fastest, by ratio(), of those that it competes with, resident
/// ones left out. `settled` is by row, as of find_settled(). Requires: rows that compete have
/// either all a ratio, or none. Where others are as fast within the deviations of both, all of them
/// are. A row without rival is not, nor is one that has not settled; where such a one may be the
/// fastest, none is. Complexity: O(rows^2).
[[nodiscard]] std::vector<bool> find_winners(std::span<const TrainRow> rows,
                                             const std::vector<bool>& settled);
[[nodiscard]] inline std::vector<bool> find_winners(std::span<const TrainRow> rows) {
  return find_winners(rows, find_settled(rows));
}

}  // namespace spillway
