#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "prefetch/planner.h"
#include "src/bench/repetition.h"
#include "src/bench/train/train_row.h"
#include "src/bench/train/train_strategy.h"
#include "src/bench/train/train_trial.h"
#include "um/bytes.h"

namespace spillway {

/// Which rows a bench is to fill, what must be run for them, and what came of it. Rows that ask for
/// the same run share it. Each subject has a resident trial, whether there is a row for it or not:
/// what the others are compared with.
class TrainComparison {
 public:
  /// `resident_limit` is the most near memory that resident trials may take.
  TrainComparison(um::Bytes resident_limit, const Settling& settling)
      : resident_limit_{resident_limit}, settling_{settling} {}

  TrainSubject& add(std::unique_ptr<TrainSubject> subject);
  /// `subject` is one that add() returned; `text` says `budget` as the user did. A resident row
  /// of the batch series has failed where it needs more than `budget`; others tell what they need.
  void add_row(TrainSeries series, const TrainSubject& subject, const TrainStrategy& strategy,
               const std::string& text, um::Bytes budget);

  [[nodiscard]] std::span<const std::unique_ptr<TrainSubject>> subjects() const {
    return subjects_;
  }
  /// In the order in which they take turns.
  [[nodiscard]] std::span<const std::unique_ptr<TrainTrial>> trials() const { return trials_; }
  /// Near memory that `subject` may be measured with: no more than its largest budget, where that
  /// is feasible, whatever resident trials take.
  [[nodiscard]] um::Bytes measuring_limit(const TrainSubject& subject) const;
  /// True when a trial needs the link of explicit copies.
  [[nodiscard]] bool has_copies() const;
  /// The resident trial of `subject`, one that add() returned.
  [[nodiscard]] TrainTrial& reference(const TrainSubject& subject) const;

  /// A row that is asked for, and what is run for it.
  struct PlannedRow {
    TrainRowKey key;
    const TrainTrial* trial = nullptr;
  };
  [[nodiscard]] std::span<const PlannedRow> planned_rows() const { return rows_; }
  /// In the order in which they were added; those that have neither run nor failed are left out.
  [[nodiscard]] std::vector<TrainRow> rows() const;

  /// complaints_about() all trials that ran; about losses too where `same_losses`, which are then
  /// to be the resident trial's, or where that did not run, the subject's first that did.
  [[nodiscard]] std::vector<std::string> complaints(bool same_losses) const;

 private:
  TrainTrial& find_or_add_trial(const TrainSubject& subject, const TrainStrategy& strategy,
                                um::Bytes budget);
  // Returns the step that those of `trial` are compared with. Requires: it has counted some.
  [[nodiscard]] ResidentStep resident_step(const TrainTrial& trial) const;
  [[nodiscard]] TrainRow fill(const PlannedRow& planned) const;

  um::Bytes resident_limit_;
  Settling settling_;
  std::vector<std::unique_ptr<TrainSubject>> subjects_;
  std::vector<std::unique_ptr<TrainTrial>> trials_;
  std::vector<PlannedRow> rows_;
};

/// Memory that a bench may take.
struct TrainRoom {
  um::Bytes near;  ///< free on the device
  um::Bytes ram;   ///< free for far memory and images
  /// The device's memory is the RAM, as the host's is: both together may take no more than `ram`.
  bool is_shared = true;
};

/// Throws: um::Error when a trial of `comparison` would take more memory than there is, near and
/// far, which is a file where `has_far_file`. Resident trials are left out: they fail where they do
/// not fit.
void expect_room(const TrainComparison& comparison, const TrainRoom& room, bool has_far_file);

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

/// Writes what a report shows of each row at a network's fixed batch that ran: "NAME.trace.json",
/// its last step as a Chrome trace, predicted and measured, and "NAME.plan.json". Throws: um::Error
/// when a file cannot be written.
void write_timelines(const TrainComparison& comparison, const std::filesystem::path& folder);

/// NAME of write_timelines(): "resnet18-b16-joint-40pct".
[[nodiscard]] std::string timeline_name(const TrainRowKey& key);

}  // namespace spillway
