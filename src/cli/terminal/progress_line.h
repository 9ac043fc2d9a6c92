#pragma once

#include <chrono>
#include <string>

namespace spillway::cli {

/// A line on standard error that says how far long work is: rewritten in place on a terminal, else
/// a new line every few seconds.
class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// Ends the line.
  ~ProgressLine();

  void show(const std::string& text);
  /// Ends the line; the next show() starts another.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  bool is_terminal_;
  bool is_open_ = false;
  Clock::time_point next_;
};

}  // namespace spillway::cli
