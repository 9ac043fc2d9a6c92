#pragma once

#include <string>

#include "src/bench/timing_summary.h"

namespace spillway::cli {

/// The median for people, "12.345 ms"; with a ~ behind it when it has not settled, else a space.
[[nodiscard]] std::string time_text(const TimingSummary& timing);

}  // namespace spillway::cli
