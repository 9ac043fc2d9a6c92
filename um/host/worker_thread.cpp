#include "um/host/worker_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
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

// What sched_setattr(2) takes; the C library has no declaration of it.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // nanoseconds; of SCHED_OTHER: the slice, since Linux 6.12
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

/// Asks for short slices: a thread that has little to do at a time then runs as soon as it wakes,
/// before kernels that keep every processor busy.
void run_soon_after_waking() {
  const SchedulingAttributes attributes{.runtime = 100'000};
  syscall(SYS_sched_setattr, 0, &attributes, 0U);
}

}  // namespace

// A thread without its name, its fine timer or its CPUs works, only less well: failures are not
// errors.
void prepare_worker_thread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  const cpu_set_t cpus = cpus_of_process();
  if (CPU_COUNT(&cpus) > 0) sched_setaffinity(0, sizeof(cpus), &cpus);
  run_soon_after_waking();
}

}  // namespace spillway::um
