#include "um/threads/engine.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <utility>

namespace spillway::um {
namespace {

/// Returns the union of the CPUs of all threads of this process. Does not read CPU sets of more
/// than 1024 CPUs. Throws nothing, since a new thread has no handler for an exception.
cpu_set_t cpus_of_process() noexcept {
  cpu_set_t all;
  CPU_ZERO(&all);
  DIR* const threads = opendir("/proc/self/task");
  if (threads == nullptr) return all;
  while (const dirent* const entry = readdir(threads)) {
    const int thread = std::atoi(entry->d_name);
    if (thread == 0) continue;  // "." and ".."
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    if (sched_getaffinity(thread, sizeof(cpus), &cpus) == 0) CPU_OR(&all, &all, &cpus);
  }
  closedir(threads);
  return all;
}

/// Blocks signals to the process in this thread. Otherwise the kernel may deliver one here and end
/// a process that waits for it in another thread. Signals raised by an instruction, such as page
/// faults, stay unblocked.
void block_signals_of_the_program() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&signals, own);
  pthread_sigmask(SIG_SETMASK, &signals, nullptr);
}

}  // namespace

// Ignores failures: a thread without its name, fine timer or CPUs works, only less well.
void prepare_worker_thread(std::string_view name) noexcept {
  std::array<char, 16> ended{};  // the kernel's limit, including the final zero
  name.copy(ended.data(), ended.size() - 1);
  pthread_setname_np(pthread_self(), ended.data());
  block_signals_of_the_program();
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  const cpu_set_t cpus = cpus_of_process();
  if (CPU_COUNT(&cpus) > 0) sched_setaffinity(0, sizeof(cpus), &cpus);
}

Engine::Engine(const std::string& name)
    : thread_{[this, name] {
        prepare_worker_thread(name);
        work();
      }} {}

Engine::~Engine() {
  {
    const std::lock_guard lock{mutex_};
    is_closed_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Engine::enqueue(std::function<void()> job) {
  {
    const std::lock_guard lock{mutex_};
    jobs_.push_back(std::move(job));
    ++enqueued_count_;
  }
  changed_.notify_one();
}

void Engine::drain() noexcept {
  std::unique_lock lock{mutex_};
  ended_.wait(lock, [this, count = enqueued_count_] { return ended_count_ >= count; });
}

void Engine::work() {
  std::unique_lock lock{mutex_};
  while (true) {
    changed_.wait(lock, [this] { return is_closed_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    {
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
    }
    lock.lock();
    ++ended_count_;
    ended_.notify_all();
  }
}

}  // namespace spillway::um
