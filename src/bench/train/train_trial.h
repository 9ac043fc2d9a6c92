#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "nets/network.h"
#include "prefetch/profile.h"
#include "prefetch/simulate/timeline.h"
#include "src/bench/repetition.h"
#include "src/bench/train/train_strategy.h"
#include "src/ops/backend.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/program/step.h"
#include "src/run/profiler.h"
#include "src/train/session.h"
#include "um/bytes.h"
#include "um/device.h"
#include "um/options.h"

namespace spillway {

/// A network at a batch size, with the images and the times of tasks that all strategies share, so
/// that nothing but memory and plan differs between them. Stays where it is made.
class TrainSubject {
 public:
  TrainSubject(std::string name, nets::Network network, const SizeModel& size_model,
               const StepOptions& step);

  /// As the user calls the network.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t image_size() const { return network_.input().height; }
  [[nodiscard]] std::size_t batch() const { return batch_; }
  [[nodiscard]] const Workload& workload() const { return workload_; }
  /// Memory that drawn images will take, while they are drawn.
  [[nodiscard]] um::Bytes image_bytes() const;
  /// "resnet18 at batch 16"
  [[nodiscard]] std::string description() const;

  /// The arguments of measure(), beside a processor.
  struct Means {
    um::Bytes limit;                  ///< of near memory, which is given back
    const um::ManagedOptions& space;  ///< far memory, link and paging
    bool with_copies = false;         ///< the link of explicit copies too
  };
  /// Measures the tasks, and the link as unified memory uses it. Throws: um::Error; Interrupted.
  void measure(ExecutionContext& context, const Means& means, const std::stop_token& stop,
               const OnProgress& on_progress);
  /// Times of the tasks, and of the link as `memory` uses it. Requires: measured.
  [[nodiscard]] const prefetch::Profile& profile(MemoryMode memory) const;

  /// Draws one batch, which every step trains on: loading costs the same each time, and little.
  void draw(std::uint64_t seed);
  /// Requires: drawn.
  [[nodiscard]] const Batch& images() const { return images_; }

  /// The plans of a run in which nothing moves, and what it needs, whether there is so much memory
  /// or not. Requires: measured.
  [[nodiscard]] Plans resident_plans() const;

 private:
  std::string name_;
  nets::Network network_;
  std::size_t batch_;
  Workload workload_;
  Batch images_;
  std::optional<prefetch::Profile> profile_;
  std::optional<prefetch::Profile> copy_profile_;
};

/// A round of a trial, from the making of its session to its last step.
struct Round {
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
  Seconds step;  ///< the median of those that count
};

/// Returns how long a resident step took near the time of `rounds`. This is the median over the
/// three rounds of `resident` that are nearest to each of them, or over all that there are. Without
/// `rounds` it is the median of all. Requires: `resident` is not empty.
[[nodiscard]] Seconds step_about(std::span<const Round> rounds, std::span<const Round> resident);

/// Steps of a warm-up: at least, and at most.
inline constexpr std::size_t kMinWarmUps = 2;
inline constexpr std::size_t kMaxWarmUps = 5;

/// Returns whether a warm-up of `steps` steps is long enough; the last two took `before` and
/// `last`. It is when a step was less than 2 % shorter than the one before it, or at kMaxWarmUps.
[[nodiscard]] bool is_warm(std::size_t steps, Seconds before, Seconds last);

/// A run's facts that must be right at any speed.
struct RunRecord {
  std::string name;  ///< "resnet18 at batch 16, joint within 512 MiB"
  um::Bytes budget;
  um::Bytes near_peak;
  std::vector<float> losses;  ///< of the steps of the first round
  bool repeats_itself;        ///< each round had these losses, bit for bit
};

/// True when both are the same bit for bit, as far as the shorter one goes: an interrupted round
/// has fewer.
[[nodiscard]] bool are_same_losses(const std::vector<float>& a, const std::vector<float>& b);

/// Parts of a sentence about near memory beyond the budget and, where `expected` is given, losses
/// that are not its, or not the same each round. Empty where all is as it must be.
[[nodiscard]] std::vector<std::string> complaints_about(const RunRecord& run_record,
                                                        const RunRecord* expected);

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

  /// Requires: planned, not failed. An error is a failure; Interrupted is thrown, and keeps the
  /// steps that were finished.
  void train(ExecutionContext& context, const TrainRound& round, const std::stop_token& stop);
  [[nodiscard]] std::size_t counted_steps() const { return samples_.size(); }
  [[nodiscard]] const Samples& samples() const { return samples_; }
  /// The sums over all counted steps.
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
  /// The last step's; empty before the first.
  [[nodiscard]] const prefetch::Timeline& timeline() const { return timeline_; }

 private:
  // Returns the times of the steps that count.
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
