#include "src/host/layout/threads.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <exception>
#include <latch>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "um/error.h"

namespace spillway::host {
namespace {

// Returns the main thread's CPUs, because the calling thread may already be bound to one.
std::vector<int> process_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(getpid(), sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// Ignores errors: a refusal costs only speed.
void bind_this_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

// Tests whether the system can start `count` threads, since OpenMP ends the process if it cannot.
void expect_threads(std::size_t count) {
  std::latch all_are_there{1};
  std::vector<std::thread> trial;
  trial.reserve(count);
  std::exception_ptr failure;  // rethrown after all started threads have been joined
  try {
    while (trial.size() < count) trial.emplace_back([&] { all_are_there.wait(); });
  } catch (...) {
    failure = std::current_exception();
  }
  all_are_there.count_down();
  for (std::thread& thread : trial) thread.join();
  try {
    if (failure) std::rethrow_exception(failure);
    return;
  } catch (const std::system_error&) {  // reported below
  }
  throw um::Error{"the system starts only " + std::to_string(trial.size()) + " of " +
                  std::to_string(count) +
                  " more threads; raise the limit of processes (ulimit -u), or ask for fewer "
                  "threads"};
}

constexpr std::size_t kFloatsOfALine = 16;

}  // namespace

std::size_t usable_cpus() {
  const std::size_t count = process_cpus().size();
  return count > 0 ? count : 1;
}

void start_team(std::size_t threads, const std::function<void()>& prepare) {
  expect_threads(threads - 1);
  omp_set_dynamic(0);
  omp_set_num_threads(static_cast<int>(threads));
  const std::vector<int> cpus = process_cpus();
  const bool binds = cpus.size() == threads;
  int given = 0;
  std::exception_ptr failure;
#pragma omp parallel
  {
#pragma omp single
    given = omp_get_num_threads();
    const auto number = static_cast<std::size_t>(omp_get_thread_num());
    if (binds) bind_this_thread(cpus[number]);
    try {
      prepare();
    } catch (...) {  // no exception may leave a parallel region
#pragma omp critical
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
  if (static_cast<std::size_t>(given) != threads) {
    throw um::Error{"OpenMP gives " + std::to_string(given) + " of the " + std::to_string(threads) +
                    " threads asked for: unset OMP_THREAD_LIMIT and OMP_DYNAMIC, or ask for fewer "
                    "threads"};
  }
}

TeamSize::TeamSize(std::size_t threads)
    : threads_before_{omp_get_max_threads()}, dynamic_before_{omp_get_dynamic()} {
  omp_set_dynamic(0);
  omp_set_num_threads(static_cast<int>(threads));
}

TeamSize::~TeamSize() {
  omp_set_num_threads(threads_before_);
  omp_set_dynamic(dynamic_before_);
}

ThreadFloats::ThreadFloats(std::size_t count)
    : count_{count},
      stride_{(count / kFloatsOfALine + 2) * kFloatsOfALine},
      all_(stride_ * static_cast<std::size_t>(omp_get_max_threads())) {}

std::span<float> ThreadFloats::mine() {
  const auto thread = static_cast<std::size_t>(omp_get_thread_num());
  return std::span{all_}.subspan(thread * stride_, count_);
}

}  // namespace spillway::host
