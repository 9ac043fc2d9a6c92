#pragma once

#include <atomic>

namespace spillway::cli {

/// While it lives, Ctrl-C (SIGINT) and SIGTERM make requested() true instead of ending the program;
/// a second one ends it at once. At most one at a time.
class Interrupt {
 public:
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  [[nodiscard]] const std::atomic<bool>& requested() const;
};

}  // namespace spillway::cli
