#pragma once

#include <chrono>
#include <string>

#include "src/cli/progress_line.h"
#include "src/sweep/sweep.h"

namespace spillway::cli {

/// The progress of a sweep and the time it still takes, on standard error.
class SweepProgressLine {
 public:
  explicit SweepProgressLine(std::string what) : what_{std::move(what)} {}

  void show(const SweepProgress& progress);
  void end() { line_.end(); }

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  ProgressLine line_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace spillway::cli
