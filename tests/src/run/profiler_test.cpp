#include "src/run/profiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "src/run/executor.h"
#include "src/run/link_profiler.h"
#include "src/run/measured_profile.h"
#include "src/run/repeated_launch.h"
#include "src/run/scratch_ring.h"
#include "tests/refusal.h"
#include "tests/src/clocked_backend.h"
#include "tests/src/small_training.h"
#include "um/error.h"
#include "um/memory.h"

namespace spillway {
namespace {

using um::Bytes;

class Profiling : public testing::Test {
 protected:
  Profiling() { setenv("SPILLWAY_MEASURING_TIME", "1", 1); }  // measure as long as users do
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
    const Measurement measurement{
        .workload = workload, .limit = Bytes{1ULL << 24U}, .mode = mode, .space = space};
    EXPECT_THROW(static_cast<void>(measure_profile(context, measurement, stop.get_token(),
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

// A limit below the largest task with its first algorithm is raised to that.
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

// An emulated link that takes at least 4 ms per MiB on any machine: at most 250 MiB/s.
TEST_F(Profiling, MeasuresAnEmulatedLinkAsNoFasterThanItIs) {
  const um::Bandwidth max{250.0 * 1024 * 1024};
  const um::ManagedOptions options{.page = Bytes{1ULL << 21U}, .link = {.bandwidth = max}};
  const prefetch::Profile profile = measure(Bytes{1ULL << 24U});
  const Bytes moved{1ULL << 22U};  // at a time, of such a limit
  for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    const prefetch::LinkProfile link = measure_link(
        {.device = *context.device, .mode = mode, .options = options, .limit = Bytes{1ULL << 24U}},
        step, *context.backend, profile, *context.compute, stop.get_token());
    for (const um::Bandwidth found : {link.offload, link.prefetch}) {
      EXPECT_GT(found.bytes_per_second(), 0);
      // The time of a move is split into latency and the rest by the times of smaller moves.
      EXPECT_GE(link.latency + moved / found, moved / max);
    }
    EXPECT_GT(link.compute_speed_while_moving, 0);
    EXPECT_LE(link.compute_speed_while_moving, 1);
    EXPECT_EQ(link.copies_while_read, mode == MemoryMode::kCopy);
    EXPECT_TRUE(link.is_duplex);  // each direction has an engine of its own
  }
}

// Explicit copies of 4 MiB and of 4 KiB take 20 ms longer than their bytes.
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

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using um::Nanoseconds;

// Profiles a convolution with two algorithms: direct and Winograd.
class ClockedProfiling : public testing::Test {
 protected:
  ClockedProfiling() { setenv("SPILLWAY_MEASURING_TIME", "1", 1); }

  // Direct convolution takes `of_run`, Winograd half a second, all other tasks a microsecond.
  static test::ClockedBackend::Duration forward(std::function<Nanoseconds(std::size_t)> of_run) {
    return [of_run = std::move(of_run)](const Operation& operation, std::string_view algorithm,
                                        std::size_t run) {
      if (!std::holds_alternative<ConvolutionForward>(operation)) return Nanoseconds{1000};
      return algorithm == "direct" ? of_run(run) : Nanoseconds{milliseconds{500}};
    };
  }

  void measure(test::ClockedBackend::Duration duration,
               ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::kAuto) {
    backend.emplace(std::move(duration));
    step.emplace(make_training_step(test::network_with_a_choice(), *backend,
                                    {.batch = 2, .convolution = algorithm}));
    test::ClockedStream stream{*backend, notice};
    profile = measure_tasks(*step, *backend, device.memory(), Bytes{1ULL << 26U}, stream, {},
                            [&](double part) { progress.emplace_back(part, passed()); });
  }
  [[nodiscard]] Nanoseconds passed() const { return backend->now() - test::KernelClock{}; }
  [[nodiscard]] std::size_t direct_runs() const {
    return backend->runs<ConvolutionForward>("direct");
  }
  [[nodiscard]] std::size_t convolution() const {
    const auto is_it = [](const prefetch::Task& task) { return task.name == "conv.forward"; };
    const auto found = std::ranges::find_if(step->graph.tasks, is_it);
    return static_cast<std::size_t>(found - step->graph.tasks.begin());
  }
  [[nodiscard]] const std::vector<Nanoseconds>& times_of_convolution() const {
    return profile.durations.at(convolution());
  }
  [[nodiscard]] bool has_choice() const { return times_of_convolution().size() > 1; }

  um::HostDevice device;
  Nanoseconds notice{0};  // the time that each notice takes; none on a host
  std::optional<test::ClockedBackend> backend;
  std::optional<Step> step;
  prefetch::Profile profile;
  std::vector<std::pair<double, Nanoseconds>> progress;  // and the time passed so far
};

TEST_F(ClockedProfiling, RunsALongTaskTwiceWithEachAlgorithm) {
  measure(forward([](auto) { return seconds{1}; }));
  EXPECT_EQ(direct_runs(), 2U);
  EXPECT_EQ(times_of_convolution().front(), seconds{1});
  if (!has_choice()) GTEST_SKIP() << "oneDNN has no Winograd here";
  EXPECT_EQ(backend->runs<ConvolutionForward>("winograd"), 2U);
  EXPECT_EQ(times_of_convolution().back(), milliseconds{500});
}

TEST_F(ClockedProfiling, RepeatsWhereTimesDiffer) {
  measure(forward([](std::size_t run) { return milliseconds{run == 1 ? 1300 : 1000 + 25 * run}; }));
  EXPECT_EQ(direct_runs(), 3U);  // of 1, 1.3 and 1.05 s the last agrees with the first
  EXPECT_EQ(times_of_convolution().front(), milliseconds{1050});
}

// Times never agree: 1, 1.2, 1.4 ... s, and half a second by Winograd. A step takes 1 s.
TEST_F(ClockedProfiling, EndsAfterTheTimeOfSomeSteps) {
  measure(forward([](std::size_t run) { return milliseconds{1000 + 200 * run}; }));
  EXPECT_GE(direct_runs(), 2U);
  EXPECT_LE(passed(), milliseconds{1500} + kRepeatedSteps * seconds{1} + milliseconds{500});
}

// GPU libraries initialize in the first kernels: slow first runs are repeated.
TEST_F(ClockedProfiling, RunsAgainWhatWasSlowAtFirst) {
  measure(forward([](std::size_t run) { return milliseconds{run == 0 ? 60'000 : 3}; }));
  EXPECT_EQ(times_of_convolution().front(), milliseconds{3});
}

TEST_F(ClockedProfiling, RunsShortTasksFiveTimes) {
  measure(forward([](auto) { return Nanoseconds{1000}; }), ConvolutionAlgorithm::kDirect);
  EXPECT_EQ(backend->all_runs(), 5 * step->graph.tasks.size());
}

// Each notice takes 10 us of a GPU, tasks 1 us and the convolution 40 us. A first launch seems to
// take 50 us, so that the next run has seven (350 us / 50 us): 41.4 us each.
TEST_F(ClockedProfiling, TimesShortTasksOfAGpuInBatches) {
  notice = microseconds{10};
  measure(forward([](auto) { return microseconds{40}; }), ConvolutionAlgorithm::kDirect);
  for (std::size_t t = 0; t < profile.durations.size(); ++t) {
    const Nanoseconds real = t == convolution() ? microseconds{40} : microseconds{1};
    EXPECT_GE(profile.durations[t].front(), real) << step->graph.tasks[t].name;
    EXPECT_LE(profile.durations[t].front(), real * 21 / 20) << step->graph.tasks[t].name;
  }
}

// A run of 250 us or more is a single launch: 5 until it takes 2 ms, then 2.
TEST_F(ClockedProfiling, LaunchesLongTasksOfAGpuOnceInARun) {
  notice = microseconds{10};
  measure(forward([](auto) { return microseconds{250}; }), ConvolutionAlgorithm::kDirect);
  EXPECT_EQ(direct_runs(), 5U);
  EXPECT_EQ(times_of_convolution().front(), microseconds{260});
  measure(forward([](auto) { return milliseconds{2}; }), ConvolutionAlgorithm::kDirect);
  EXPECT_EQ(direct_runs(), 2U);
}

// The library initializes in the first launch, which is not the estimate for a batch.
TEST_F(ClockedProfiling, MakesBatchesOfWhatWasSlowAtFirst) {
  notice = microseconds{10};
  measure(forward([](std::size_t run) { return microseconds{run == 0 ? 60'000 : 3}; }),
          ConvolutionAlgorithm::kDirect);
  EXPECT_LE(times_of_convolution().front(), Nanoseconds{3300});
}

// Batches of no time at all, as of a clock that is too coarse, do not grow for ever.
TEST_F(ClockedProfiling, EndsWhereAGpuTakesNoTime) {
  notice = Nanoseconds{1};
  measure(forward([](auto) { return Nanoseconds{0}; }), ConvolutionAlgorithm::kDirect);
  EXPECT_LE(times_of_convolution().front(), Nanoseconds{1});
  EXPECT_LE(direct_runs(), 1000U);
}

// The convolution is the second of a dozen tasks and takes all the time.
TEST_F(ClockedProfiling, SaysWhichPartOfTheTimeHasPassed) {
  measure(forward([](auto) { return seconds{100}; }), ConvolutionAlgorithm::kDirect);
  ASSERT_EQ(passed() / seconds{100}, 2);
  for (const auto& [part, time] : progress) {
    EXPECT_EQ(part > 0, time > Nanoseconds{0});
    if (time >= seconds{200}) {
      EXPECT_GT(part, 0.9);
    }
  }
  const std::size_t tasks = step->graph.tasks.size();
  EXPECT_NEAR(progress.at(tasks + 1).first, 0.5, 0.1);  // after the first run of each
}

// Moves are measured during the load, which must not take longer than they do.
TEST_F(ClockedProfiling, TakesTheLongestTaskOfATenthOfASecondAsALoad) {
  measure(forward([](auto) { return Nanoseconds{1000}; }), ConvolutionAlgorithm::kDirect);
  const auto load = [&] { return find_load(*step, profile, Bytes{1ULL << 30U}).value(); };
  for (auto& times : profile.durations) times = {seconds{9}};
  profile.durations.at(3) = {seconds{2}};
  EXPECT_EQ(load().task, prefetch::TaskId{3}) << "the shortest";
  profile.durations.at(4) = {milliseconds{20}};
  profile.durations.at(5) = {milliseconds{90}};
  EXPECT_EQ(load().task, prefetch::TaskId{5});
  EXPECT_EQ(load().time, milliseconds{90});
}

using std::chrono::nanoseconds;

// Restores the environment variable afterwards.
class MeasuringTime : public testing::Test {
 protected:
  MeasuringTime() {
    if (const char* const text = std::getenv(kVariable)) before_ = text;
    unsetenv(kVariable);
  }
  ~MeasuringTime() override { set(before_); }
  static void set(const std::string& text) { setenv(kVariable, text.c_str(), 1); }

 private:
  static constexpr const char* kVariable = "SPILLWAY_MEASURING_TIME";
  std::string before_ = "1";
};

TEST_F(MeasuringTime, IsTheUsualTimesAFactorOfTheEnvironment) {
  EXPECT_EQ(measuring_time(nanoseconds{8}), nanoseconds{8});
  set("0.25");
  EXPECT_EQ(measuring_time(nanoseconds{8}), nanoseconds{2});
  set("1");
  EXPECT_EQ(measuring_time(nanoseconds{8}), nanoseconds{8});
}

TEST_F(MeasuringTime, RefusesWhatIsNoSuchFactor) {
  for (const char* text : {"", "0", "-0.1", "1.5", "0.1s", "nan", "short"}) {
    set(text);
    EXPECT_EQ(
        test::refusal([] { return measuring_time(nanoseconds{8}); }),
        std::string{"SPILLWAY_MEASURING_TIME="} + text + " is no factor over 0 and at most 1");
  }
}

}  // namespace
}  // namespace spillway
