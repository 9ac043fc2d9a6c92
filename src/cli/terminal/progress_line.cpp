#include "src/cli/terminal/progress_line.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "src/cli/terminal/tell.h"
#include "src/cli/terminal/text_table.h"

namespace spillway::cli {
namespace {

constexpr std::chrono::milliseconds kOnTerminal{100};
constexpr std::chrono::seconds kElsewhere{10};

// Returns the width of the terminal; 80 if unknown.
int columns() {
  winsize size{};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return is_known ? size.ws_col : 80;
}

}  // namespace

ProgressLine::ProgressLine() : is_terminal_{isatty(STDERR_FILENO) == 1} {}

ProgressLine::~ProgressLine() {
  if (is_open_) std::fputc('\n', stderr);
}

void ProgressLine::show(const std::string& text) {
  if (Clock::now() < next_) return;
  next_ =
      Clock::now() + (is_terminal_ ? Clock::duration{kOnTerminal} : Clock::duration{kElsewhere});
  if (is_terminal_) {
    tell("\r{:.{}}\x1b[K", text, columns() - 1);  // the last column would wrap
    is_open_ = true;
  } else {
    tell("{}\n", text);
  }
}

void ProgressLine::show_part(const std::string& work, double fraction) {
  show(fmt::format("{}: {:.0f} %", work, 100 * fraction));
}

void ProgressLine::show_fields(const std::vector<std::string>& fields) {
  constexpr std::size_t kAnyWidth = 1000;
  show(fitting(fields, is_terminal_ ? static_cast<std::size_t>(columns() - 1) : kAnyWidth));
}

void ProgressLine::end() {
  if (is_open_) std::fputc('\n', stderr);
  is_open_ = false;
  next_ = {};
}

void TimeLeftLine::show(double done, const std::string& latest) {
  const double passed = std::chrono::duration<double>{Clock::now() - begin_}.count();
  const std::string left =
      done > 0 ? fmt::format(", {:.0f} s left", passed * (1 - done) / done) : "";
  line_.show(fmt::format("{} {:.0f} %{}; {}", what_, 100 * done, left, latest));
}

}  // namespace spillway::cli
