#pragma once

#include <stop_token>
#include <thread>

namespace spillway::cli {

/// While it lives, Ctrl-C (SIGINT) and SIGTERM request a stop instead of ending the program; a
/// second one ends it at once. At most one at a time.
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

}  // namespace spillway::cli
