#include "src/bench/train/train_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "src/bench/round.h"
#include "src/plan/predicted_step.h"
#include "um/error.h"

namespace spillway {
namespace {

using um::Bytes;

Bytes each(Bytes all, std::size_t steps) { return Bytes{(all.count() + steps / 2) / steps}; }

TrainMeasurement measurement_of(const TrainTrial& trial) {
  const std::size_t steps = trial.counted_steps();
  const um::Counters& all = trial.counters();
  return {.step = trial.samples().timing(),
          .near_peak = trial.near_peak(),
          .bytes_in = each(all.bytes_prefetched, steps),
          .bytes_out = each(all.bytes_offloaded, steps),
          .faults = (all.faults + steps / 2) / steps,
          .stalled = trial.stalled() / static_cast<double>(steps)};
}

}  // namespace

TrainSubject& TrainComparison::add(std::unique_ptr<TrainSubject> subject) {
  subjects_.push_back(std::move(subject));
  find_or_add_trial(*subjects_.back(), resident_strategy(), resident_limit_);
  return *subjects_.back();
}

void TrainComparison::add_row(TrainSeries series, const TrainSubject& subject,
                              const TrainStrategy& strategy, const std::string& text,
                              Bytes budget) {
  const TrainTrial& trial =
      find_or_add_trial(subject, strategy, strategy.is_resident() ? resident_limit_ : budget);
  rows_.push_back({.key = TrainRowKey{.series = series,
                                      .net = subject.name(),
                                      .image_size = subject.image_size(),
                                      .batch = subject.batch(),
                                      .strategy = strategy,
                                      .budget = text,
                                      .budget_bytes = budget,
                                      .resident_bytes = subject.workload().need().resident},
                   .trial = &trial});
}

TrainTrial& TrainComparison::find_or_add_trial(const TrainSubject& subject,
                                               const TrainStrategy& strategy, Bytes budget) {
  const auto found = std::ranges::find_if(trials_, [&](const auto& trial) {
    return &trial->subject() == &subject && trial->strategy().memory == strategy.memory &&
           trial->strategy().planner == strategy.planner &&
           trial->strategy().plan_file == strategy.plan_file && trial->budget() == budget;
  });
  if (found != trials_.end()) return **found;
  trials_.push_back(std::make_unique<TrainTrial>(subject, strategy, budget, settling_));
  return *trials_.back();
}

Bytes TrainComparison::measuring_limit(const TrainSubject& subject) const {
  const prefetch::NearNeed& need = subject.workload().need();
  Bytes largest = need.smallest;
  for (const auto& trial : trials_) {
    if (&trial->subject() != &subject || trial->strategy().is_resident()) continue;
    largest = std::max(largest, trial->budget());
  }
  return std::min(largest, need.peak_with_workspace);
}

bool TrainComparison::has_copies() const {
  return std::ranges::any_of(
      trials_, [](const auto& trial) { return trial->strategy().memory == MemoryMode::kCopy; });
}

TrainTrial& TrainComparison::reference(const TrainSubject& subject) const {
  const auto found = std::ranges::find_if(trials_, [&](const auto& trial) {
    return &trial->subject() == &subject && trial->strategy().is_resident();
  });
  um::expects(found != trials_.end(), "a subject of this comparison");
  return **found;
}

ResidentStep TrainComparison::resident_step(const TrainTrial& trial) const {
  if (trial.strategy().is_resident()) {
    return {.time = trial.samples().timing().median, .is_measured = true};
  }
  const TrainSubject& subject = trial.subject();
  if (const auto resident = reference(subject).rounds(); !resident.empty()) {
    return {.time = step_about(trial.rounds(), resident), .is_measured = true};
  }
  const prefetch::Profile& profile = subject.profile(MemoryMode::kResident);
  return {.time = predicted_step(subject.workload(), std::span{&profile, 1},
                                 subject.resident_plans(), MemoryMode::kResident)};
}

TrainRow TrainComparison::fill(const PlannedRow& planned) const {
  const TrainTrial& trial = *planned.trial;
  TrainRow row{.key = planned.key};
  if (trial.has_failed()) {
    row.failure = trial.failure();
    return row;
  }
  if (planned.key.strategy.is_resident()) {
    const Bytes need = trial.plans()->budget;
    if (planned.key.series != TrainSeries::kBatch) {
      row.key.budget_bytes = need;
    } else if (need > planned.key.budget_bytes) {
      row.failure = "all of it resident needs " + um::to_string(need) + ", more than the budget";
      return row;
    }
  }
  row.resident = resident_step(trial);
  row.predicted = trial.predicted();
  row.measurement = measurement_of(trial);
  return row;
}

std::vector<TrainRow> TrainComparison::rows() const {
  std::vector<TrainRow> filled;
  for (const PlannedRow& row : rows_) {
    if (row.trial->has_failed() || row.trial->counted_steps() > 0) filled.push_back(fill(row));
  }
  return filled;
}

std::vector<std::string> TrainComparison::complaints(bool same_losses) const {
  std::vector<std::string> all;
  for (const auto& subject : subjects_) {
    std::optional<RunRecord> expected;  // resident trials come first
    for (const auto& trial : trials_) {
      if (&trial->subject() != subject.get()) continue;
      const RunRecord run_record = trial->run_record();
      if (same_losses && !expected && !run_record.losses.empty()) expected = run_record;
      for (std::string& each : complaints_about(run_record, expected ? &*expected : nullptr)) {
        all.push_back(std::move(each));
      }
    }
  }
  return all;
}

}  // namespace spillway
