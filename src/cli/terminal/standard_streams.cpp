#include "src/cli/terminal/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "um/error.h"

namespace spillway::cli {

// As stdopen() of gnulib: standard input opened to write only, and the others to read only, so that
// their use fails as with no descriptor at all. A new file gets the lowest descriptor that is free.
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
