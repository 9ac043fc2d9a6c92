#include "um/threads/worker_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace spillway::um {
namespace {

namespace fs = std::filesystem;

/// The CPUs of all threads of this process together. A CPU set of more than 1024 CPUs is not read.
cpu_set_t cpus_of_process() {
  cpu_set_t all;
  CPU_ZERO(&all);
  std::error_code failure;
  for (fs::directory_iterator it{"/proc/self/task", failure}, end; !failure && it != end;
       it.increment(failure)) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    const int thread = std::atoi(it->path().filename().c_str());  // the kernel writes only numbers
    if (sched_getaffinity(thread, sizeof(cpus), &cpus) == 0) CPU_OR(&all, &all, &cpus);
  }
  return all;
}

/// Of signals to the process the kernel would else give some to this thread, and end the process
/// that waits for them elsewhere. Those that an instruction raises stay: page faults, and errors.
void block_signals_of_the_program() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&signals, own);
  pthread_sigmask(SIG_SETMASK, &signals, nullptr);
}

}  // namespace

// A thread without its name, its fine timer or its CPUs works, only less well: failures are not
// errors.
void prepare_worker_thread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  block_signals_of_the_program();
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  const cpu_set_t cpus = cpus_of_process();
  if (CPU_COUNT(&cpus) > 0) sched_setaffinity(0, sizeof(cpus), &cpus);
}

}  // namespace spillway::um
