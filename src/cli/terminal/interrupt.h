#pragma once

#include <stop_token>
#include <thread>

namespace spillway::cli {

/// While it lives, Ctrl-C (SIGINT), SIGTERM and SIGHUP request a stop instead of ending the
/// program; a second one, of any of them, ends it at once. One that is ignored when it is
/// made stays so: nohup has SIGHUP ignored, and a script has SIGINT in what it starts with &. At
/// most one at a time.
class Interrupt {
 public:
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread watcher_;  // a signal handler may not request a stop itself
};

/// What a shell reports of a program that a signal ended: 128 and the number of the signal that
/// requested the last stop; that of SIGINT when none has.
[[nodiscard]] int exit_code_of_interrupt();

}  // namespace spillway::cli
