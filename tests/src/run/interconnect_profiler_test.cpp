#include "src/run/interconnect_profiler.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "prefetch/files/machine.h"
#include "tests/src/ranks/on_ranks.h"
#include "tests/src/small_training.h"
#include "um/host/copy_space.h"

namespace spillway {
namespace {

using um::Bytes;
using um::Nanoseconds;

// 4 ranks send 6 messages, 1.5 times the bytes: 1.5 MB more in 1 ms more are 1.5 GB/s. At that rate
// 1000 bytes take a microsecond; the rest of 61 us is six latencies.
TEST(FittedInterconnect, PredictsTheTimesThatItIsMadeOf) {
  const std::array<AllReduceTime, 2> times = {
      {{Bytes{1000}, Nanoseconds{61'000}}, {Bytes{1'001'000}, Nanoseconds{1'061'000}}}};
  const prefetch::Interconnect interconnect = fitted_interconnect(4, times);
  EXPECT_EQ(interconnect.ranks, 4U);
  EXPECT_NEAR(interconnect.bandwidth.bytes_per_second(), 1.5e9, 1);
  EXPECT_EQ(interconnect.latency, Nanoseconds{10'000});
  for (const AllReduceTime& time : times) {
    const auto predicted = prefetch::all_reduce_time(time.size, interconnect, {});
    EXPECT_NEAR(static_cast<double>(predicted.alone.count()),
                static_cast<double>(time.time.count()), 10);
  }
}

TEST(FittedInterconnect, IsNeverSlowerThanNothing) {
  const std::array<AllReduceTime, 2> times = {
      {{Bytes{4}, Nanoseconds{50}}, {Bytes{4000}, Nanoseconds{40}}}};
  const prefetch::Interconnect interconnect = fitted_interconnect(2, times);
  EXPECT_GT(interconnect.bandwidth.bytes_per_second(), 0);
  EXPECT_GE(interconnect.latency, Nanoseconds{0});
}

TEST(MeasuredInterconnect, IsTheSameOnAllRanks) {
  ThreadRanks group{3};
  std::vector<prefetch::Interconnect> measured(3);
  const auto errors = testing::on_ranks(group, [&](Communicator& communicator) {
    um::HostMemory memory;
    measured[communicator.rank()] = measure_interconnect({communicator, communicator, memory});
  });
  EXPECT_EQ(errors, testing::no_errors(group));
  for (const prefetch::Interconnect& interconnect : measured) {
    EXPECT_EQ(interconnect.ranks, 3U);
    EXPECT_GT(interconnect.bandwidth.bytes_per_second(), 0);
    EXPECT_EQ(interconnect.bandwidth, measured[0].bandwidth);
    EXPECT_EQ(interconnect.latency, measured[0].latency);
  }
}

// Returns the speed of a rank with `times_of_need` times the memory that its step needs.
double speed_of(Communicator& communicator, unsigned times_of_need) {
  ExecutionContext context = test::small_context();
  const Workload workload{test::small_network(), *context.backend, {.batch = 8}};
  const Step& step = workload.training();
  const prefetch::Profile times =
      prefetch::model_profile(step.graph, prefetch::find_machine("host"));
  return compute_speed_while_exchanging(
      {communicator, communicator, context.device->memory()},
      {.context = context,
       .step = step,
       .profile = times,
       .limit = times_of_need * workload.need().peak_with_workspace});
}

TEST(SpeedWhileExchanging, IsTheSlowestRanksAndNoMoreThanAlone) {
  ThreadRanks group{2};
  std::vector<double> speeds(2);
  const auto errors = testing::on_ranks(group, [&](Communicator& communicator) {
    speeds[communicator.rank()] = speed_of(communicator, 2);
  });
  EXPECT_EQ(errors, testing::no_errors(group));
  EXPECT_GT(speeds[0], 0);
  EXPECT_LE(speeds[0], 1);
  EXPECT_EQ(speeds[0], speeds[1]);
}

// If no task fits one rank's memory, no rank waits.
TEST(SpeedWhileExchanging, IsThatAloneWhereThereIsNoRoom) {
  ThreadRanks group{2};
  const auto errors = testing::on_ranks(group, [&](Communicator& communicator) {
    EXPECT_EQ(speed_of(communicator, communicator.rank() == 0 ? 0 : 2), 1);
  });
  EXPECT_EQ(errors, testing::no_errors(group));
}

}  // namespace
}  // namespace spillway
