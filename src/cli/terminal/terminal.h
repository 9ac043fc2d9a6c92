#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::cli {

/// Writes `text` to standard error and ignores failures: a message must not end the work that it is
/// about.
void tell(std::string_view text) noexcept;

/// Formats with fmt and writes the result as tell(text) does.
template <typename First, typename... Others>
void tell(fmt::format_string<First, Others...> format, First&& first, Others&&... others) {
  tell(std::string_view{
      fmt::format(format, std::forward<First>(first), std::forward<Others>(others)...)});
}

/// Silences tell() from now on, as another rank prints the same.
void be_silent() noexcept;

/// Opens each missing descriptor of 0 to 2 as a stream that cannot be read or written. Otherwise a
/// file could get its number. main() calls it first.
void open_missing_streams() noexcept;

/// Returns the width in letters of the terminal behind a descriptor; 80 where it is none.
[[nodiscard]] std::size_t terminal_width(int descriptor) noexcept;

/// Returns whether standard output is a pipe that has no reader any more, such as `| head`.
[[nodiscard]] bool is_output_unread() noexcept;

/// Flushes standard output. Throws: um::Error if any output has been lost.
void expect_output_written();

/// One line of a table.
using TableLine = std::vector<std::string>;

/// Formats a table with columns aligned to the right, the first `left` ones to the left. Lines may
/// have fewer columns than others.
[[nodiscard]] std::string text_table(const std::vector<TableLine>& lines, std::size_t left = 1);

/// Formats a table of any number of columns as tables of at most `width` letters, one below the
/// other with an empty line between them. Each has the first column and as many others as fit, at
/// least one. Requires: lines of equal length.
[[nodiscard]] std::string text_tables(const std::vector<TableLine>& lines, std::size_t width);

/// Joins as many of `fields` as fit `width` letters with two spaces; at least the first.
[[nodiscard]] std::string fitting(const std::vector<std::string>& fields, std::size_t width);

/// A progress line on standard error. On a terminal it is rewritten in place; elsewhere a new line
/// appears every few seconds.
class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// Does end().
  ~ProgressLine();

  void show(const std::string& text);
  /// Shows "measuring tasks: 40 %".
  void show_part(const std::string& work, double fraction);
  /// Shows as many of `fields`, most important first, as fit the terminal; elsewhere all.
  void show_fields(const std::vector<std::string>& fields);
  /// Shows the latest text if it came too soon to be shown.
  void show_latest();
  /// Ends the line; the next show() starts a new one. On a terminal the latest text stays there.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  void write(const std::string& text);

  bool is_terminal_;
  bool is_open_ = false;
  std::string latest_;  // empty: it was shown
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
