#include "src/profile/profiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stop_token>
#include <vector>

#include "src/execute/executor.h"
#include "src/profile/link_profiler.h"
#include "src/profile/measured_profile.h"
#include "src/profile/scratch_launch.h"
#include "tests/src/small_training.h"
#include "um/error.h"
#include "um/ledger.h"
#include "um/limited_memory.h"

namespace spillway {
namespace {

using um::Bytes;

class Profiling : public testing::Test {
 protected:
  Profiling() { setenv("SPILLWAY_MEASURING_TIME", "1", 1); }  // these want what users get
  [[nodiscard]] prefetch::Profile measure(Bytes limit) {
    return measure_tasks(step, *context.backend, memory, limit, *context.compute, stop.get_token(),
                         [&](double part) { progress.push_back(part); });
  }
  std::stop_source stop;
  ExecutionContext context = test::small_context();
  Step step = make_training_step(test::small_network(), *context.backend, {.batch = 2});
  um::Ledger ledger{Bytes{1ULL << 30U}};
  um::LimitedMemory memory{context.device->memory(), ledger};
  std::vector<double> progress;
};

TEST_F(Profiling, GivesEachTaskATimeForEachOfItsAlgorithms) {
  const prefetch::Profile profile = measure(Bytes{1ULL << 24U});
  EXPECT_EQ(profile.graph, prefetch::fingerprint(step.graph));
  ASSERT_EQ(profile.durations.size(), step.graph.tasks.size());
  for (std::size_t t = 0; t < profile.durations.size(); ++t) {
    const prefetch::Task& task = step.graph.tasks[t];
    ASSERT_EQ(profile.durations[t].size(), task.algorithms.size()) << task.name;
    for (const um::Nanoseconds time : profile.durations[t]) EXPECT_GT(time.count(), 0) << task.name;
  }
}

TEST_F(Profiling, RefusesASpaceThatCannotBeMadeBeforeItMeasures) {
  const nets::Network network = test::small_network();
  const Workload workload{network, *context.backend, {.batch = 2}};
  um::ManagedOptions space;
  space.far.file = "/no/such/folder/far";
  for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    EXPECT_THROW(static_cast<void>(measure_profile(context, workload, Bytes{1ULL << 24U}, mode,
                                                   space, stop.get_token(),
                                                   [&](double part) { progress.push_back(part); })),
                 um::Error)
        << to_string(mode);
  }
  EXPECT_TRUE(progress.empty());
}

TEST_F(Profiling, SaysHowFarItIs) {
  static_cast<void>(measure(Bytes{1ULL << 24U}));
  EXPECT_GT(progress.size(), step.graph.tasks.size());
  EXPECT_TRUE(std::ranges::is_sorted(progress));
  EXPECT_EQ(progress.back(), 1);
}

// No limit can be too small for the largest task with its first algorithm.
TEST_F(Profiling, TakesAtMostItsLimitOrTheLargestTaskAndGivesItBack) {
  Bytes largest;
  for (std::uint32_t t = 0; t < step.graph.tasks.size(); ++t) {
    largest = std::max(largest, ScratchLaunch::size(step, prefetch::TaskId{t}, 0));
  }
  static_cast<void>(measure(Bytes{1}));
  EXPECT_EQ(ledger.peak(), largest);
  EXPECT_EQ(ledger.in_use(), Bytes{});
}

TEST_F(Profiling, EndsWhenTheUserStopsIt) {
  stop.request_stop();
  EXPECT_THROW(static_cast<void>(measure(Bytes{1ULL << 24U})), Interrupted);
}

// A link that takes at least 4 ms for each MiB, whatever this machine does: at most 250 MiB/s.
TEST_F(Profiling, MeasuresAnEmulatedLinkAsNoFasterThanItIs) {
  const um::Bandwidth max{250.0 * 1024 * 1024};
  const um::ManagedOptions options{.page = Bytes{1ULL << 21U}, .link = {.bandwidth = max}};
  const prefetch::Profile profile = measure(Bytes{1ULL << 24U});
  for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    const prefetch::LinkProfile link = measure_link(
        {.device = *context.device, .mode = mode, .options = options, .limit = Bytes{1ULL << 24U}},
        step, *context.backend, profile, *context.compute, stop.get_token());
    for (const um::Bandwidth found : {link.offload, link.prefetch}) {
      EXPECT_GT(found.bytes_per_second(), 0);
      EXPECT_LE(found.bytes_per_second(), max.bytes_per_second());
    }
    EXPECT_GT(link.compute_speed_while_moving, 0);
    EXPECT_LE(link.compute_speed_while_moving, 1);
    EXPECT_EQ(link.copies_while_read, mode == MemoryMode::kCopy);
    EXPECT_TRUE(link.is_duplex);  // each direction has an engine of its own
  }
}

// Explicit copies of 4 MiB and of 4 KiB that each take 20 ms longer than their bytes.
TEST_F(Profiling, MeasuresTheLatencyOfAnEmulatedLink) {
  const um::ManagedOptions options{.page = Bytes{4096},
                                   .link = {.latency = std::chrono::milliseconds{20}}};
  const prefetch::Profile profile = measure(Bytes{1ULL << 24U});
  const prefetch::LinkProfile link =
      measure_link({.device = *context.device,
                    .mode = MemoryMode::kCopy,
                    .options = options,
                    .limit = Bytes{1ULL << 24U}},
                   step, *context.backend, profile, *context.compute, stop.get_token());
  EXPECT_GE(link.latency, std::chrono::milliseconds{19});
}

}  // namespace
}  // namespace spillway
