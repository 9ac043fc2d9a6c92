#include "um/threads/engine.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <csignal>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace spillway::um {
namespace {

TEST(Engine, DoesJobsInOrderAndFinishesThemAtItsEnd) {
  std::vector<int> done;
  {
    Engine engine{"test"};
    for (int i = 0; i < 1000; ++i) engine.enqueue([&done, i] { done.push_back(i); });
  }
  std::vector<int> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(done, expected);
}

TEST(Engine, TakesJobsFromAJob) {
  std::vector<int> done;
  {
    Engine engine{"test"};
    engine.enqueue([&] {
      engine.enqueue([&] {
        engine.enqueue([&] { done.push_back(3); });
        done.push_back(2);
      });
      done.push_back(1);
    });
  }
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3}));
}

TEST(Engine, DrainsWhatWasEnqueuedBefore) {
  Engine engine{"test"};
  engine.drain();
  std::atomic<int> done{0};
  for (int i = 1; i <= 100; ++i) {
    engine.enqueue([&] { ++done; });
    if (i % 10 != 0) continue;
    engine.drain();
    EXPECT_EQ(done, i);
  }
}

TEST(Engine, GivesItsThreadTheFirst15CharactersOfItsName) {
  std::array<char, 16> name{};
  {
    Engine engine{"a name that is too long"};
    engine.enqueue([&] { pthread_getname_np(pthread_self(), name.data(), name.size()); });
  }
  EXPECT_EQ(std::string{name.data()}, "a name that is ");
}

// Else a signal that the program waits for in a thread of its own may end it through the engine's.
TEST(Engine, LeavesSignalsToThreadsOfTheProgramButForPageFaults) {
  sigset_t blocked;
  sigemptyset(&blocked);
  {
    Engine engine{"test"};
    engine.enqueue([&] { pthread_sigmask(SIG_SETMASK, nullptr, &blocked); });
  }
  for (const int theirs : {SIGTERM, SIGINT, SIGUSR1, SIGXFSZ}) {
    EXPECT_EQ(sigismember(&blocked, theirs), 1) << theirs;
  }
  for (const int ours : {SIGSEGV, SIGBUS}) EXPECT_EQ(sigismember(&blocked, ours), 0) << ours;
}

cpu_set_t cpus_of_this_thread() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof(cpus), &cpus);
  return cpus;
}

// As OpenMP does to the thread that enters its first parallel region.
void bind_this_thread_to_its_first_cpu() {
  const cpu_set_t cpus = cpus_of_this_thread();
  cpu_set_t first;
  CPU_ZERO(&first);
  for (int cpu = 0; CPU_COUNT(&first) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) CPU_SET(cpu, &first);
  }
  sched_setaffinity(0, sizeof(first), &first);
}

TEST(Engine, UsesTheCpusOfTheProcessWhenItsMakerIsBoundToOne) {
  const cpu_set_t all = cpus_of_this_thread();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one CPU";
  cpu_set_t engines;
  CPU_ZERO(&engines);
  std::thread maker{[&] {
    bind_this_thread_to_its_first_cpu();
    Engine engine{"test"};
    engine.enqueue([&] { engines = cpus_of_this_thread(); });
  }};
  maker.join();
  EXPECT_TRUE(CPU_EQUAL(&engines, &all));
}

}  // namespace
}  // namespace spillway::um
