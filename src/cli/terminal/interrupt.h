#pragma once

#include <stop_token>
#include <thread>

namespace spillway::cli {

/// While it exists, SIGINT (Ctrl-C), SIGTERM and SIGHUP request a stop instead of ending the
/// program. A second signal ends it immediately. Signals that are ignored at construction stay
/// ignored: nohup ignores SIGHUP, and shells ignore SIGINT for background jobs. At most one object
/// at a time.
class Interrupt {
 public:
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread watcher_;  // a signal handler cannot request a stop itself
};

/// Returns the exit code that shells report for a signal: 128 plus the signal of the last stop
/// request, or SIGINT if there was none.
[[nodiscard]] int exit_code_of_interrupt();

}  // namespace spillway::cli
