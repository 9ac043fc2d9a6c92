#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace spillway::cli {

/// The first of `fields`, with two spaces between them, that fit `width` letters together; in any
/// case one.
[[nodiscard]] std::string fitting(const std::vector<std::string>& fields, std::size_t width);

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
  /// "measuring tasks: 40 %"
  void show_part(const std::string& work, double fraction);
  /// As many of `fields`, the most important first, as fit the terminal's width; elsewhere all.
  void show_fields(const std::vector<std::string>& fields);
  /// Ends the line; the next show() starts another.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  bool is_terminal_;
  bool is_open_ = false;
  Clock::time_point next_;
};

}  // namespace spillway::cli
