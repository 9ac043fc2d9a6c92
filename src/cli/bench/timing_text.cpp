#include "src/cli/bench/timing_text.h"

#include <chrono>

#include "src/cli/flags/duration.h"

namespace spillway::cli {

std::string time_text(const TimingSummary& timing) {
  const auto median = std::chrono::round<um::Nanoseconds>(timing.median);
  return duration_text(median) + (timing.settled ? ' ' : '~');
}

}  // namespace spillway::cli
