#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "src/bench/repetition.h"
#include "src/bench/train/train_comparison.h"
#include "src/ops/backend.h"
#include "um/options.h"

namespace spillway {

/// How a bench of trainings measures.
struct TrainBenchOptions {
  um::ManagedOptions space;  ///< far memory, link and paging
  std::size_t rounds = 3;    ///< at most
  std::size_t steps = 3;     ///< counted in a round, after those that warm up; at least one
  Seconds max_time{600};     ///< after which nothing further begins
  Seconds resident_age{60};  ///< a resident run is repeated where a trial would begin later than
                             ///< this after it
  std::uint64_t seed = 1;    ///< of weights and images
};

/// One line for the user: what is being done, and how long it may still take.
using TellProgress = std::function<void(const std::string& text)>;

/// Fills a comparison: measures each subject once, plans each trial, and lets all of them take
/// turns, round after round, so that a machine that is busy for a while disturbs them alike. Each
/// trial is compared with the resident runs about its time.
class TrainBench {
 public:
  /// All arguments but the options must outlive it.
  TrainBench(ExecutionContext& context, const TrainComparison& comparison,
             TrainBenchOptions options, std::stop_token stop);

  /// Until all rounds are done, all figures have settled, or time is up. Trials that fail are
  /// recorded as such; the comparison has what there is at any time.
  /// Throws: Interrupted when `stop` is requested; um::Error when a subject cannot be measured.
  void run(const TellProgress& tell);

 private:
  using Clock = std::chrono::steady_clock;

  void measure_subjects(const TellProgress& tell);
  void plan_trials(const TellProgress& tell);
  void train_round(std::size_t round, const TellProgress& tell);
  void train(TrainTrial& trial);
  // The last resident run that `trial` could be compared with is too long ago.
  [[nodiscard]] bool needs_resident_run(const TrainTrial& trial) const;
  [[nodiscard]] bool is_settled() const;
  [[nodiscard]] bool is_time_up() const { return Clock::now() - begin_ >= options_.max_time; }
  void expect_going_on() const;
  // At most, when trial `next` of `round` is about to begin.
  [[nodiscard]] Seconds time_left(std::size_t round, std::size_t next) const;

  // What a round of `trial` takes: the last one, or what is expected of the first; none of a failed
  // one.
  [[nodiscard]] Seconds round_time(const TrainTrial& trial) const;
  [[nodiscard]] Seconds time_with_resident_runs(const TrainTrial& trial) const;
  [[nodiscard]] Seconds predicted_round(const TrainTrial& trial) const;
  // What trials took over what was predicted, their sessions' making included.
  [[nodiscard]] double slowness_so_far() const;

  ExecutionContext& context_;
  const TrainComparison& comparison_;
  TrainBenchOptions options_;
  std::stop_token stop_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace spillway
