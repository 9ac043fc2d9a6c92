#include "src/cli/terminal/interrupt.h"

#include <semaphore.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace spillway::cli {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

sem_t wake_up;  // sem_post() is one of the few functions that a signal handler may call
volatile std::sig_atomic_t last_signal = SIGINT;
volatile std::sig_atomic_t is_requested = 0;

void take_no_more() {
  for (const int signal : kSignals) {
    if (std::signal(signal, SIG_DFL) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

void request(int signal) {
  const int error = errno;  // of whatever was interrupted
  if (is_requested != 0) {  // both came before one was taken
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // ends the program when this handler returns
    return;
  }
  is_requested = 1;
  last_signal = signal;
  sem_post(&wake_up);
  take_no_more();
  errno = error;
}

}  // namespace

Interrupt::Interrupt() {
  is_requested = 0;
  sem_init(&wake_up, 0, 0);
  watcher_ = std::jthread{[this](const std::stop_token& is_over) {
    while (sem_wait(&wake_up) != 0) {  // a signal interrupted the wait
    }
    if (!is_over.stop_requested()) source_.request_stop();
  }};
  for (const int signal : kSignals) {
    // A shell has SIGINT ignored in what a script starts with &; who sends it there means it.
    const bool is_ignored = std::signal(signal, request) == SIG_IGN;
    if (is_ignored && signal == SIGHUP) std::signal(signal, SIG_IGN);
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
