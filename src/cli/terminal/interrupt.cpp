#include "src/cli/terminal/interrupt.h"

#include <semaphore.h>

#include <csignal>

namespace spillway::cli {
namespace {

sem_t wake_up;  // sem_post() is one of the few functions that a signal handler may call

void request(int signal) {
  sem_post(&wake_up);
  std::signal(signal, SIG_DFL);
}

}  // namespace

Interrupt::Interrupt() {
  sem_init(&wake_up, 0, 0);
  watcher_ = std::jthread{[this](const std::stop_token& is_over) {
    while (sem_wait(&wake_up) != 0) {  // a signal interrupted the wait
    }
    if (!is_over.stop_requested()) source_.request_stop();
  }};
  std::signal(SIGINT, request);
  std::signal(SIGTERM, request);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  watcher_.request_stop();
  sem_post(&wake_up);
}

}  // namespace spillway::cli
