#include "src/cli/terminal/interrupt.h"

#include <semaphore.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>

namespace spillway::cli {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

sem_t wake_up;  // sem_post() is async-signal-safe
volatile std::sig_atomic_t last_signal = SIGINT;
// Atomic, as two threads may each handle a signal.
std::atomic<bool> is_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);
// Whether each of kSignals is handled: not if it was ignored at the program's start.
std::array<std::atomic<bool>, kSignals.size()> is_taken{};

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void take_no_more() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (is_taken[i]) std::signal(kSignals[i], SIG_DFL);
  }
}

void request(int signal) {
  const int error = errno;            // of the interrupted code
  if (is_requested.exchange(true)) {  // the second signal
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // ends the program when this handler returns
    return;
  }
  last_signal = signal;
  sem_post(&wake_up);
  take_no_more();
  errno = error;
}

}  // namespace

Interrupt::Interrupt() {
  is_requested = false;
  sem_init(&wake_up, 0, 0);
  watcher_ = std::jthread{[this](const std::stop_token& is_over) {
    while (sem_wait(&wake_up) != 0) {  // a signal interrupted the wait
    }
    if (!is_over.stop_requested()) source_.request_stop();
  }};
  for (std::size_t i = 0; i < kSignals.size(); ++i) is_taken[i] = !is_ignored(kSignals[i]);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (is_taken[i]) std::signal(kSignals[i], request);
  }
}

Interrupt::~Interrupt() {
  take_no_more();
  watcher_.request_stop();
  sem_post(&wake_up);
}

int exit_code_of_interrupt() {
  constexpr int kOfSignals = 128;
  return kOfSignals + last_signal;
}

}  // namespace spillway::cli
