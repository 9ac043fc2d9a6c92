#include "src/cli/bench/partial_measurement.h"

#include "src/execute/executor.h"

namespace spillway::cli {

PartialMeasurement::PartialMeasurement(
    const std::function<void(const std::stop_token& stop)>& measure) {
  try {
    measure(interrupt_.token());
  } catch (const Interrupted&) {
    is_interrupted_ = true;
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void PartialMeasurement::expect_no_failure() const {
  if (failure_) std::rethrow_exception(failure_);
}

void PartialMeasurement::expect_not_interrupted() const {
  if (is_interrupted_) throw Interrupted{"rows that were not reached are left out"};
}

}  // namespace spillway::cli
