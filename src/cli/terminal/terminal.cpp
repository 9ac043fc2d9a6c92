#include "src/cli/terminal/terminal.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include "um/error.h"

namespace spillway::cli {
namespace {

std::atomic<bool> is_silent = false;

constexpr std::chrono::milliseconds kOnTerminal{100};
constexpr std::chrono::seconds kElsewhere{10};

}  // namespace

std::size_t terminal_width(int descriptor) noexcept {
  winsize size{};
  const bool is_known = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return is_known ? size.ws_col : 80;
}

void be_silent() noexcept { is_silent = true; }

void tell(std::string_view text) noexcept {
  if (is_silent) return;
  [[maybe_unused]] const std::size_t written = std::fwrite(text.data(), 1, text.size(), stderr);
}

// Does as gnulib's stdopen(): opens standard input only for writing and the others only for
// reading. Their use fails as without a descriptor. A new file gets the lowest free descriptor.
void open_missing_streams() noexcept {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    [[maybe_unused]] const int opened =
        ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

bool is_output_unread() noexcept {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

void expect_output_written() {
  errno = 0;
  const bool is_flushed = std::fflush(stdout) == 0;
  if (is_flushed && std::ferror(stdout) == 0) return;
  if (!is_flushed && errno != 0) throw um::system_error("cannot write to standard output", errno);
  throw um::Error{"cannot write to standard output"};  // an earlier call failed
}

std::string text_table(const std::vector<TableLine>& lines, std::size_t left) {
  std::vector<std::size_t> widths;
  for (const TableLine& line : lines) {
    if (widths.size() < line.size()) widths.resize(line.size());
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string table;
  for (const TableLine& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0) text += "  ";
      text += i < left ? fmt::format("{:<{}}", line[i], widths[i])
                       : fmt::format("{:>{}}", line[i], widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    table += text + '\n';
  }
  return table;
}

std::string text_tables(const std::vector<TableLine>& lines, std::size_t width) {
  constexpr std::size_t kGap = 2;
  const auto width_of = [&](std::size_t column) {
    std::size_t widest = 0;
    for (const TableLine& line : lines) widest = std::max(widest, line[column].size());
    return widest;
  };
  const std::size_t columns = lines.front().size();
  std::string tables;
  for (std::size_t next = 1; next < columns || tables.empty();) {
    std::vector<TableLine> part;
    part.reserve(lines.size());
    for (const TableLine& line : lines) part.push_back({line.front()});
    for (std::size_t used = width_of(0); next < columns; ++next) {
      used += kGap + width_of(next);
      if (used > width && part.front().size() > 1) break;
      for (std::size_t i = 0; i < lines.size(); ++i) part[i].push_back(lines[i][next]);
    }
    tables += (tables.empty() ? "" : "\n") + text_table(part);
  }
  return tables;
}

std::string fitting(const std::vector<std::string>& fields, std::size_t width) {
  std::string line;
  for (const std::string& field : fields) {
    if (line.empty()) {
      line = field;
    } else if (line.size() + 2 + field.size() <= width) {
      line += "  " + field;
    } else {
      break;
    }
  }
  return line;
}

ProgressLine::ProgressLine() : is_terminal_{isatty(STDERR_FILENO) == 1} {}

ProgressLine::~ProgressLine() { end(); }

void ProgressLine::show(const std::string& text) {
  if (Clock::now() < next_) {
    latest_ = text;
    return;
  }
  write(text);
}

void ProgressLine::write(const std::string& text) {
  latest_.clear();
  next_ =
      Clock::now() + (is_terminal_ ? Clock::duration{kOnTerminal} : Clock::duration{kElsewhere});
  if (is_terminal_) {
    tell("\r{:.{}}\x1b[K", text, terminal_width(STDERR_FILENO) - 1);  // the last column would wrap
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
  show(fitting(fields, is_terminal_ ? terminal_width(STDERR_FILENO) - 1 : kAnyWidth));
}

void ProgressLine::show_latest() {
  if (!latest_.empty()) write(std::string{latest_});
}

void ProgressLine::end() {
  if (is_terminal_) {
    show_latest();
    if (is_open_) std::fputc('\n', stderr);
  }
  is_open_ = false;
  latest_.clear();
  next_ = {};
}

void TimeLeftLine::show(double done, const std::string& latest) {
  const double passed = std::chrono::duration<double>{Clock::now() - begin_}.count();
  const std::string left =
      done > 0 ? fmt::format(", {:.0f} s left", passed * (1 - done) / done) : "";
  line_.show(fmt::format("{} {:.0f} %{}; {}", what_, 100 * done, left, latest));
}

}  // namespace spillway::cli
