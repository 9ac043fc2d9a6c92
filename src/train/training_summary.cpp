#include "src/train/training_summary.h"

#include <algorithm>

namespace spillway {
namespace {

um::Nanoseconds median(std::vector<um::Nanoseconds> times) {
  if (times.size() > 1) times.erase(times.begin());
  if (times.empty()) return um::Nanoseconds{0};
  std::ranges::sort(times);
  return times[times.size() / 2];
}

}  // namespace

Evaluation evaluation_of(const LastEvaluation& last) {
  return {.loss = last.loss, .accuracy = last.accuracy, .top5 = last.top5};
}

void SummaryOfSteps::add(std::uint64_t step, const StepReport& report) {
  durations_.push_back(report.duration);
  if (summary_.steps_run++ == 0) summary_.first_loss = report.loss;
  summary_.steps = step;
  summary_.last_loss = report.loss;
  summary_.counters += report.counters;
  summary_.data_wait += report.data_wait;
  if (!report.stalled) return;
  summary_.stalled += *report.stalled;
  ++summary_.timed_steps;
}

TrainingSummary SummaryOfSteps::summary() const {
  TrainingSummary result = summary_;
  result.median_step = median(durations_);
  return result;
}

}  // namespace spillway
