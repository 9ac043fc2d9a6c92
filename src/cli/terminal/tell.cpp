#include "src/cli/terminal/tell.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "um/error.h"

namespace spillway::cli {
namespace {

std::atomic<bool> is_silent = false;

}  // namespace

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
        open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void expect_output_written() {
  errno = 0;
  const bool is_flushed = std::fflush(stdout) == 0;
  if (is_flushed && std::ferror(stdout) == 0) return;
  if (!is_flushed && errno != 0) throw um::system_error("cannot write to standard output", errno);
  throw um::Error{"cannot write to standard output"};  // an earlier call failed
}

}  // namespace spillway::cli
