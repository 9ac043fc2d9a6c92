#include "um/threads/engine.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/um/stream_contract.h"
#include "um/threads/back_off.h"
#include "um/threads/thread_stream.h"

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

// Otherwise a signal that the program awaits in another thread could end it through the engine's
// thread.
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

// Imitates OpenMP in the thread that enters its first parallel region.
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

const StreamMaker kMaker{.kind = "Thread", .make = [](const std::string& name) {
                           return std::make_unique<ThreadStream>(name);
                         }};

INSTANTIATE_TEST_SUITE_P(Host, StreamContract, testing::Values(kMaker), kind_of);

TEST(ThreadStream, ReadsWhatItsWorkHasWritten) {
  std::array<std::byte, 2> near{};
  std::array<std::byte, 2> read{};
  ThreadStream stream{"test"};
  stream.enqueue([&] {
    near = {std::byte{5}, std::byte{7}};
    stream.read(near, read);
  });
  stream.synchronize();
  EXPECT_EQ(read, near);
}

using std::chrono::milliseconds;

TEST(BackOff, DoublesItsPausesUpToTheLongestAndTheTotal) {
  BackOff waits{{.first = milliseconds{1}, .longest = milliseconds{4}, .total = milliseconds{13}}};
  std::vector<Nanoseconds> pauses;
  while (const auto pause = waits.next()) pauses.push_back(*pause);
  EXPECT_EQ(pauses, (std::vector<Nanoseconds>{milliseconds{1}, milliseconds{2}, milliseconds{4},
                                              milliseconds{4}, milliseconds{2}}));
  EXPECT_EQ(waits.next(), std::nullopt);
}

TEST(BackOff, WithoutTimeAllowsNoOtherTry) {
  BackOff waits{{.first = milliseconds{1}, .longest = milliseconds{4}, .total = milliseconds{0}}};
  EXPECT_EQ(waits.next(), std::nullopt);
}

using Clock = std::chrono::steady_clock;

TEST(SleepUntil, NeverReturnsEarly) {
  for (int i = 1; i <= 20; ++i) {
    const auto end = Clock::now() + std::chrono::microseconds{50 * i};
    sleep_until(end);
    ASSERT_GE(Clock::now(), end);
  }
}

TEST(SleepUntil, ReturnsWhenTheTimeHasPassed) {
  sleep_until(Clock::time_point{});  // otherwise never ends
  sleep_until(Clock::now() - std::chrono::seconds{1});
}

}  // namespace
}  // namespace spillway::um
