#include "src/bench/repetition.h"

#include <algorithm>

#include "src/execute/executor.h"
#include "um/error.h"

namespace spillway {
namespace {

// Whether samples have settled, looked at so seldom that the looking costs little beside the runs.
class SettledCheck {
 public:
  bool operator()(const Samples& samples) {
    if (samples.size() < next_) return false;
    next_ = samples.size() + std::max<std::size_t>(1, samples.size() / 8);
    return samples.are_settled();
  }

 private:
  std::size_t next_ = 0;
};

}  // namespace

TimingSummary measure(const TimedRun& once, const Repetition& repetition,
                      const std::stop_token& stop, const TellTime& now) {
  um::expects(repetition.max_runs > 0, "a measurement has at least one run");
  const auto begin = now();
  const auto run = [&](Phase phase) {
    if (stop.stop_requested()) throw Interrupted{"what was not reached is left out"};
    return once(phase);
  };
  for (std::size_t i = 0; i < repetition.warm_ups; ++i) run(Phase::kWarmUp);
  Samples samples{repetition.settling};
  SettledCheck has_settled;
  Seconds taken{0};
  do {
    samples.add(run(Phase::kCounted));
    taken = now() - begin;
  } while (samples.size() < repetition.max_runs && taken < repetition.max_time &&
           (taken < repetition.min_time || !has_settled(samples)));
  return samples.timing();
}

}  // namespace spillway
