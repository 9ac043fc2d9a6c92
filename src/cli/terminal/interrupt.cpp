#include "src/cli/terminal/interrupt.h"

#include <csignal>

namespace spillway::cli {
namespace {

std::atomic<bool> is_requested = false;  // a signal handler has nothing else to write to

void request(int signal) {
  is_requested = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

Interrupt::Interrupt() {
  is_requested = false;
  std::signal(SIGINT, request);
  std::signal(SIGTERM, request);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

const std::atomic<bool>& Interrupt::requested() const { return is_requested; }

}  // namespace spillway::cli
