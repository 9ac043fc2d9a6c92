#include "src/bench/train/train_trial.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "src/bench/warm_up.h"
#include "src/plan/predicted_step.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr float kLearningRate = 0.01F;

// Page faults alone keep no budget where nothing evicts before the whole memory is full.
void expect_budget_kept(const TrainStrategy& strategy, const Plans& plans,
                        const um::Device& device) {
  if (strategy.memory != MemoryMode::kManaged || device.evicts()) return;
  if (plans.training.back().residency != prefetch::Residency::kOnDemand) return;
  throw um::Error{"page faults alone keep no budget on " + device.name()};
}

Plans plans_of(const TrainStrategy& strategy, const Workload& workload,
               const prefetch::Profile& profile, um::Bytes budget) {
  if (strategy.plan_file.empty()) return make_plans(workload, profile, budget, strategy.request());
  prefetch::Plan plan =
      prefetch::read_plan(prefetch::JsonFile{strategy.plan_file}, workload.training().graph);
  return use_plan(std::move(plan), strategy.plan_file, workload, profile, budget,
                  strategy.request());
}

}  // namespace

void TrainTrial::plan(const um::Device& device) {
  try {
    const prefetch::Profile& profile = subject_.profile(strategy_.memory);
    Plans plans = plans_of(strategy_, subject_.workload(), profile, budget_);
    expect_budget_kept(strategy_, plans, device);
    predicted_ =
        predicted_step(subject_.workload(), std::span{&profile, 1}, plans, strategy_.memory);
    plans_ = std::move(plans);
  } catch (const um::Error& error) {
    failure_ = error.what();
  }
}

void TrainTrial::train(ExecutionContext& context, const TrainRound& round,
                       const std::stop_token& stop) {
  um::expects(plans_.has_value() && !has_failed(), "a trial that was planned");
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  try {
    Session session{context, subject_.workload(), *plans_, strategy_.memory, round.space, stop};
    session.state().initialise(round.seed);
    const Samples steps = train_steps(session, round);
    rounds_.push_back({.begin = begin, .end = Clock::now(), .step = steps.timing().median});
  } catch (const um::Error& error) {
    failure_ = error.what();
  }
}

Samples TrainTrial::train_steps(Session& session, const TrainRound& round) {
  std::vector<float> losses;
  const auto train_step = [&] {
    StepReport report = session.train({.seed = round.seed,
                                       .step = losses.size(),
                                       .learning_rate = kLearningRate,
                                       .batch = &subject_.images(),
                                       .next_batch = &subject_.images()});
    losses.push_back(report.loss);
    near_peak_ = std::max(near_peak_, session.near_peak());
    if (report.stalled) last_stalled_ = *report.stalled;
    return report;
  };
  Seconds before{0};
  Seconds last = train_step().duration;
  while (!is_warm(losses.size(), before, last)) {
    before = std::exchange(last, train_step().duration);
  }
  Samples steps;
  for (std::size_t i = 0; i < round.steps; ++i) {
    const StepReport report = train_step();
    count(report);
    steps.add(report.duration);
  }
  timeline_ = session.timeline();
  if (losses_.empty()) losses_ = losses;
  repeats_itself_ = repeats_itself_ && are_same_losses(losses_, losses);
  return steps;
}

RunRecord TrainTrial::run_record() const {
  return {.name = description(*this),
          .budget = plans_ ? plans_->budget : budget_,
          .near_peak = near_peak_,
          .losses = losses_,
          .repeats_itself = repeats_itself_};
}

void TrainTrial::count(const StepReport& report) {
  samples_.add(report.duration);
  counters_ += report.counters;
  stalled_ += last_stalled_;
}

std::string description(const TrainTrial& trial) {
  return trial.subject().description() + ", " + trial.strategy().name +
         (trial.strategy().is_resident() ? "" : " within " + um::to_string(trial.budget()));
}

}  // namespace spillway
