#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "prefetch/simulate/timeline.h"
#include "src/bench/round.h"
#include "src/bench/timing_summary.h"
#include "src/bench/train/run_checks.h"
#include "src/bench/train/train_strategy.h"
#include "src/bench/train/train_subject.h"
#include "src/ops/backend.h"
#include "src/plan/plans.h"
#include "src/train/session.h"
#include "um/bytes.h"
#include "um/device.h"
#include "um/options.h"

namespace spillway {

/// How a round trains: from the first weights, steps that warm up, then `steps` that count.
struct TrainRound {
  const um::ManagedOptions& space;  ///< far memory, link and paging
  std::size_t steps = 3;            ///< that count; at least one
  std::uint64_t seed = 1;
};

/// A strategy at a budget, trained for real in rounds, and what came of it. Once it has failed
/// it stays so, and says why.
class TrainTrial {
 public:
  /// `subject` must outlive it. `budget` is the whole run's; resident, the most it may need.
  TrainTrial(const TrainSubject& subject, TrainStrategy strategy, um::Bytes budget,
             const Settling& settling = {})
      : subject_{subject}, strategy_{std::move(strategy)}, budget_{budget}, samples_{settling} {}

  [[nodiscard]] const TrainSubject& subject() const { return subject_; }
  [[nodiscard]] const TrainStrategy& strategy() const { return strategy_; }
  [[nodiscard]] um::Bytes budget() const { return budget_; }

  /// Requires: a subject that was measured. A budget that is too small is a failure.
  void plan(const um::Device& device);
  [[nodiscard]] bool has_failed() const { return !failure_.empty(); }
  /// A sentence for the user.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// There after plan(), unless that failed.
  [[nodiscard]] const std::optional<Plans>& plans() const { return plans_; }
  [[nodiscard]] Seconds predicted() const { return predicted_; }

  /// Requires: planned, not failed. What goes wrong is a failure, but for Interrupted, which leaves
  /// the steps that were finished.
  void train(ExecutionContext& context, const TrainRound& round, const std::stop_token& stop);
  [[nodiscard]] std::size_t counted_steps() const { return samples_.size(); }
  [[nodiscard]] const Samples& samples() const { return samples_; }
  /// Of all counted steps together.
  [[nodiscard]] const um::Counters& counters() const { return counters_; }
  /// Where a step's times were not taken, as in the last step before it of which they were.
  [[nodiscard]] Seconds stalled() const { return stalled_; }
  [[nodiscard]] um::Bytes near_peak() const { return near_peak_; }
  /// How long the last of rounds() took; zero before the first.
  [[nodiscard]] Seconds last_round() const {
    return rounds_.empty() ? Seconds{0} : rounds_.back().end - rounds_.back().begin;
  }

  /// The rounds that came to their end.
  [[nodiscard]] std::span<const Round> rounds() const { return rounds_; }
  /// Empty losses before the first round has ended.
  [[nodiscard]] RunRecord run_record() const;
  /// Of the last step; empty before the first.
  [[nodiscard]] const prefetch::Timeline& timeline() const { return timeline_; }

 private:
  // What its steps that count took.
  Samples train_steps(Session& session, const TrainRound& round);
  void count(const StepReport& report);

  const TrainSubject& subject_;
  TrainStrategy strategy_;
  um::Bytes budget_;
  std::string failure_;
  std::optional<Plans> plans_;
  Seconds predicted_{0};
  Samples samples_;
  um::Counters counters_;
  Seconds stalled_{0};
  Seconds last_stalled_{0};
  um::Bytes near_peak_;
  std::vector<Round> rounds_;
  std::vector<float> losses_;
  bool repeats_itself_ = true;
  prefetch::Timeline timeline_;
};

/// "resnet18 at batch 16, joint within 512 MiB"
[[nodiscard]] std::string description(const TrainTrial& trial);

}  // namespace spillway
