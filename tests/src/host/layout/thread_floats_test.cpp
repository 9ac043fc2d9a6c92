#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <thread>

#include "src/host/layout/threads.h"

namespace spillway::host {
namespace {

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
