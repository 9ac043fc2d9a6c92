#include "src/bench/train/train_bench.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "src/bench/train/train_trial.h"
#include "src/run/executor.h"

namespace spillway {
namespace {

std::string place(std::size_t index, std::size_t count) {
  return std::to_string(index + 1) + " of " + std::to_string(count);
}

std::string minutes(Seconds time) {
  constexpr double kMinute = 60;
  if (time.count() < 2 * kMinute) return std::to_string(std::lround(time.count())) + " s";
  return std::to_string(std::lround(time.count() / kMinute)) + " min";
}

}  // namespace

TrainBench::TrainBench(ExecutionContext& context, const TrainComparison& comparison,
                       TrainBenchOptions options, std::stop_token stop)
    : context_{context},
      comparison_{comparison},
      options_{std::move(options)},
      stop_{std::move(stop)} {}

void TrainBench::run(const TellProgress& tell) {
  measure_subjects(tell);
  plan_trials(tell);
  for (std::size_t round = 0; round < options_.rounds; ++round) {
    train_round(round, tell);
    if (is_time_up() || is_settled()) return;
  }
}

void TrainBench::expect_going_on() const {
  if (stop_.stop_requested()) throw Interrupted{};
}

void TrainBench::measure_subjects(const TellProgress& tell) {
  const auto subjects = comparison_.subjects();
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    expect_going_on();
    TrainSubject& subject = *subjects[i];
    const std::string what =
        "measuring tasks of " + subject.description() + " (" + place(i, subjects.size()) + "): ";
    subject.measure(
        context_,
        {.limit =
             std::min(comparison_.measuring_limit(subject), context_.device->available_memory()),
         .space = options_.space,
         .with_copies = comparison_.has_copies()},
        stop_, [&](double part) { tell(what + std::to_string(std::lround(100 * part)) + " %"); });
    subject.draw(options_.seed);
  }
}

void TrainBench::plan_trials(const TellProgress& tell) {
  const auto trials = comparison_.trials();
  for (std::size_t i = 0; i < trials.size(); ++i) {
    expect_going_on();
    tell("planning " + place(i, trials.size()) + ": " + description(*trials[i]));
    trials[i]->plan(*context_.device);
  }
}

void TrainBench::train_round(std::size_t round, const TellProgress& tell) {
  const auto trials = comparison_.trials();
  for (std::size_t i = 0; i < trials.size(); ++i) {
    TrainTrial& trial = *trials[i];
    if (trial.has_failed()) continue;
    expect_going_on();
    if (is_time_up()) return;
    tell("round " + place(round, options_.rounds) + ", training " + place(i, trials.size()) + ": " +
         description(trial) + "; at most " + minutes(time_left(round, i)) + " left");
    if (needs_resident_run(trial)) {
      train(comparison_.reference(trial.subject()));
      expect_going_on();
      if (is_time_up()) return;
    }
    train(trial);
  }
}

void TrainBench::train(TrainTrial& trial) {
  trial.train(context_, {.space = options_.space, .steps = options_.steps, .seed = options_.seed},
              stop_);
}

bool TrainBench::needs_resident_run(const TrainTrial& trial) const {
  const TrainTrial& resident = comparison_.reference(trial.subject());
  if (&trial == &resident || resident.has_failed() || resident.rounds().empty()) return false;
  return Clock::now() - resident.rounds().back().end > options_.resident_age;
}

bool TrainBench::is_settled() const {
  return std::ranges::all_of(comparison_.trials(), [](const auto& trial) {
    return trial->has_failed() || trial->samples().are_settled();
  });
}

Seconds TrainBench::time_left(std::size_t round, std::size_t next) const {
  const auto trials = comparison_.trials();
  Seconds left{0};
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const std::size_t rounds = options_.rounds - round - (i < next ? 1 : 0);
    left += static_cast<double>(rounds) * time_with_resident_runs(*trials[i]);
  }
  const Seconds until_cap = options_.max_time - (Clock::now() - begin_);
  return std::clamp(left, Seconds{0}, std::max(Seconds{0}, until_cap));
}

Seconds TrainBench::time_with_resident_runs(const TrainTrial& trial) const {
  const Seconds own = round_time(trial);
  const TrainTrial& resident = comparison_.reference(trial.subject());
  if (&trial == &resident) return own;
  return own + std::min(1.0, own / options_.resident_age) * round_time(resident);
}

Seconds TrainBench::round_time(const TrainTrial& trial) const {
  if (trial.has_failed()) return Seconds{0};
  if (trial.last_round() > Seconds{0}) return trial.last_round();
  return slowness_so_far() * predicted_round(trial);
}

Seconds TrainBench::predicted_round(const TrainTrial& trial) const {
  return static_cast<double>(kMaxWarmUps + options_.steps) * trial.predicted();
}

double TrainBench::slowness_so_far() const {
  Seconds took{0};
  Seconds predicted{0};
  for (const auto& trial : comparison_.trials()) {
    if (trial->has_failed() || trial->last_round() <= Seconds{0}) continue;
    took += trial->last_round();
    predicted += predicted_round(*trial);
  }
  return predicted > Seconds{0} ? took / predicted : 1;
}

}  // namespace spillway
