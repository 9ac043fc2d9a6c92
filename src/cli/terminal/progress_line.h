#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace spillway::cli {

/// A progress line on standard error. On a terminal it is rewritten in place; elsewhere a new line
/// appears every few seconds.
class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// Ends the line.
  ~ProgressLine();

  void show(const std::string& text);
  /// Shows "measuring tasks: 40 %".
  void show_part(const std::string& work, double fraction);
  /// Shows as many of `fields`, most important first, as fit the terminal; elsewhere all.
  void show_fields(const std::vector<std::string>& fields);
  /// Ends the line; the next show() starts a new one.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  bool is_terminal_;
  bool is_open_ = false;
  Clock::time_point next_;
};

/// Shows progress and the remaining time of long work on standard error.
class TimeLeftLine {
 public:
  explicit TimeLeftLine(std::string what) : what_{std::move(what)} {}

  /// `done` is a fraction; at 0 the remaining time is unknown. `latest` is the current item.
  void show(double done, const std::string& latest);
  void end() { line_.end(); }

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  ProgressLine line_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace spillway::cli
