#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/bench/timing_summary.h"
#include "src/bench/train/train_row.h"
#include "src/bench/train/train_strategy.h"
#include "src/bench/train/train_subject.h"
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
  // What the steps of `trial` are compared with. Requires: it has counted some.
  [[nodiscard]] ResidentStep resident_step(const TrainTrial& trial) const;
  [[nodiscard]] TrainRow fill(const PlannedRow& planned) const;

  um::Bytes resident_limit_;
  Settling settling_;
  std::vector<std::unique_ptr<TrainSubject>> subjects_;
  std::vector<std::unique_ptr<TrainTrial>> trials_;
  std::vector<PlannedRow> rows_;
};

}  // namespace spillway
