#include "src/host/layout/threads.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <thread>

#include "src/host/host_backend.h"
#include "um/error.h"

namespace spillway::host {
namespace {

std::size_t team_size() {
  int size = 0;
#pragma omp parallel
  {
#pragma omp single
    size = omp_get_num_threads();
  }
  return static_cast<std::size_t>(size);
}

TEST(Team, HasTheThreadsAskedForOnTheThreadThatStartedIt) {
  std::thread([] {
    start_team(3);
    EXPECT_EQ(team_size(), 3U);
  }).join();
}

TEST(Team, IsBoundWhenThereIsACpuForEachThread) {
  std::thread([] {
    start_team(usable_cpus());
    int bound_to_one = 0;
#pragma omp parallel reduction(+ : bound_to_one)
    {
      cpu_set_t set;
      CPU_ZERO(&set);
      sched_getaffinity(0, sizeof(set), &set);
      bound_to_one += CPU_COUNT(&set) == 1 ? 1 : 0;
    }
    EXPECT_EQ(static_cast<std::size_t>(bound_to_one), usable_cpus());
  }).join();
}

TEST(TeamSizes, HoldForAScope) {
  const int before = omp_get_max_threads();
  {
    const TeamSize team{3};
    EXPECT_EQ(omp_get_max_threads(), 3);
    EXPECT_EQ(omp_get_dynamic(), 0);
  }
  EXPECT_EQ(omp_get_max_threads(), before);
}

// OpenMP reads its environment before main, so a limited process must be a new one. A "threadsafe"
// death test starts this executable again.
void exit_with_sentence_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const um::Error& error) {
    std::cerr << error.what() << "\n";
    std::exit(1);  // NOLINT(concurrency-mt-unsafe)
  }
  std::exit(0);  // NOLINT(concurrency-mt-unsafe)
}

TEST(TeamDeathTest, RefusesWhereOpenMpGivesFewerThreads) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  setenv("OMP_THREAD_LIMIT", "1", 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EXIT(exit_with_sentence_of([] { start_team(2); }), testing::ExitedWithCode(1),
              "OpenMP gives 1 of the 2 threads");
  EXPECT_EXIT(exit_with_sentence_of([] { const HostBackend backend{2}; }),
              testing::ExitedWithCode(1), "OpenMP may use 1 of the 2 threads");
  EXPECT_EXIT(exit_with_sentence_of([] { start_team(1); }), testing::ExitedWithCode(0), "");
  unsetenv("OMP_THREAD_LIMIT");  // NOLINT(concurrency-mt-unsafe)
}

TEST(Team, IsCompleteEvenWhereOpenMpIsAskedToBeDynamic) {
  std::thread([] {
    omp_set_dynamic(1);
    start_team(3);
    EXPECT_EQ(team_size(), 3U);
  }).join();
}

TEST(ThreadFloats, AreEachThreadsOwn) {
  std::thread([] {
    start_team(3);
    ThreadFloats floats{17};
    std::array<float*, 3> begins{};
#pragma omp parallel
    {
      const std::span<float> mine = floats.mine();
      std::ranges::fill(mine, static_cast<float>(omp_get_thread_num()));
      begins.at(static_cast<std::size_t>(omp_get_thread_num())) = mine.data();
    }
    for (std::size_t i = 0; i < begins.size(); ++i) {
      EXPECT_EQ(std::vector(begins.at(i), begins.at(i) + 17),
                std::vector(17, static_cast<float>(i)));
    }
  }).join();
}

}  // namespace
}  // namespace spillway::host
