#include "src/bench/train/train_comparison.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/simulate/chrome_trace.h"
#include "prefetch/simulate/simulate.h"
#include "src/bench/train/train_trial.h"
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

// Unified memory takes no more than it can use, the arena of explicit copies all of its budget.
Bytes near_of(const TrainTrial& trial) {
  if (trial.strategy().memory == MemoryMode::kCopy) return trial.budget();
  return std::min(trial.budget(), trial.subject().workload().need().peak_with_workspace);
}

void refuse(const TrainTrial& trial, Bytes needed, const char* what, Bytes free,
            bool has_far_file) {
  throw um::Error{description(trial) + ", needs " + um::to_string(needed) + " of " + what +
                  ", but " + um::to_string(free) + " are free; give smaller batches or budgets" +
                  (has_far_file ? "" : ", or --far file:PATH")};
}

// The last step of `trial`; in which nothing moves, what was measured alone.
nlohmann::json trace_of(const TrainTrial& trial) {
  const prefetch::TaskGraph& graph = trial.subject().workload().training().graph;
  const prefetch::Plan& plan = trial.plans()->training;
  std::vector<prefetch::NamedTimeline> timelines;
  if (!trial.strategy().is_resident()) {
    const prefetch::Profile& profile = trial.subject().profile(trial.strategy().memory);
    timelines.push_back({"predicted", prefetch::simulate(graph, plan, profile)});
  }
  timelines.push_back({"measured, last step", trial.timeline()});
  return prefetch::to_chrome_trace(graph, plan, timelines);
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
  return {.time = predicted_step(subject.workload(), subject.profile(MemoryMode::kResident),
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

void expect_room(const TrainComparison& comparison, const TrainRoom& room, bool has_far_file) {
  Bytes images;
  for (const auto& subject : comparison.subjects()) images += subject->image_bytes();
  for (const auto& trial : comparison.trials()) {
    if (trial->strategy().is_resident()) continue;
    const prefetch::NearNeed& need = trial->subject().workload().need();
    const Bytes near = near_of(*trial);
    const Bytes ram = images + (has_far_file ? Bytes{} : need.resident);
    if (room.is_shared && near + ram > room.ram) {
      refuse(*trial, near + ram, "memory, near and far", room.ram, has_far_file);
    }
    if (near > room.near) refuse(*trial, near, "near memory", room.near, true);
    if (ram > room.ram) refuse(*trial, ram, "far memory", room.ram, has_far_file);
  }
}

std::vector<std::size_t> batches_around(std::size_t batch, bool few) {
  um::expects(batch > 0, "a batch of at least one");
  const std::vector<std::size_t> quarters =
      few ? std::vector<std::size_t>{2, 4, 8} : std::vector<std::size_t>{1, 2, 4, 6, 8};
  std::vector<std::size_t> batches;
  for (const std::size_t n : quarters) {
    const std::size_t rounded = batch * n / 4;
    if (rounded > 0 && (batches.empty() || rounded > batches.back())) batches.push_back(rounded);
  }
  return batches;
}

um::Bytes budget_at_middle(std::span<const prefetch::NearNeed> needs, std::size_t middle) {
  um::expects(middle < needs.size(), "one of the batches");
  const um::Bytes own = needs[middle].resident;
  const um::Bytes before = middle > 0 ? needs[middle - 1].resident : um::Bytes{};
  const um::Bytes budget{(own.count() + before.count()) / 2};
  const um::Bytes smallest = needs.back().smallest;
  return smallest < own ? std::max(budget, smallest) : budget;
}

void add_batch_series(TrainComparison& comparison, std::span<const TrainSubject* const> batches,
                      std::span<const TrainStrategy> strategies, const NamedBudget& budget) {
  for (const TrainSubject* const subject : batches) {
    const auto add = [&](const TrainStrategy& strategy) {
      comparison.add_row(TrainSeries::kBatch, *subject, strategy, budget.text, budget.size);
    };
    add(resident_strategy());
    for (const TrainStrategy& strategy : strategies) {
      if (!strategy.is_resident()) add(strategy);
    }
  }
}

void add_budget_series(TrainComparison& comparison, TrainSeries series, const TrainSubject& subject,
                       std::span<const TrainStrategy> strategies,
                       std::span<const NamedBudget> budgets) {
  const um::Bytes need = subject.workload().need().resident;
  comparison.add_row(series, subject, resident_strategy(), "100%", need);
  for (const NamedBudget& budget : budgets) {
    for (const TrainStrategy& strategy : strategies) {
      if (strategy.is_resident()) continue;
      comparison.add_row(series, subject, strategy, budget.text, budget.size);
    }
  }
}

std::string timeline_name(const TrainRowKey& key) {
  std::string name = key.net + "-b" + std::to_string(key.batch) + "-" + key.strategy.name;
  if (!key.strategy.is_resident()) name += "-" + key.budget;
  std::erase(name, ' ');
  if (name.ends_with('%')) name.replace(name.size() - 1, 1, "pct");
  const auto has_no_place = [](unsigned char c) {
    return std::isalnum(c) == 0 && c != '-' && c != '+' && c != '.';
  };
  std::ranges::replace_if(name, has_no_place, '_');
  return name;
}

void write_timelines(const TrainComparison& comparison, const std::filesystem::path& folder) {
  for (const auto& [key, trial] : comparison.planned_rows()) {
    if (key.series == TrainSeries::kBatch || trial->timeline().runs.empty()) continue;
    const std::string path = (folder / timeline_name(key)).string();
    prefetch::write_json(trace_of(*trial), path + ".trace.json");
    prefetch::write_json(
        prefetch::to_json(trial->plans()->training, trial->subject().workload().training().graph),
        path + ".plan.json");
  }
}

}  // namespace spillway
