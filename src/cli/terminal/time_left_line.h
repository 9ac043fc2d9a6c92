#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "src/cli/terminal/progress_line.h"

namespace spillway::cli {

/// How far long work is and the time it still takes, on standard error.
class TimeLeftLine {
 public:
  explicit TimeLeftLine(std::string what) : what_{std::move(what)} {}

  /// `done` of 1 is all of it; of 0, there is no time left to tell. `latest` says what it is at.
  void show(double done, const std::string& latest);
  void end() { line_.end(); }

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  ProgressLine line_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace spillway::cli
