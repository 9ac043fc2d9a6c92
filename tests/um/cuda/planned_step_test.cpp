// Whole steps of the executor on the recorded driver: every call with its stream, range and awaited
// events.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "prefetch/runtime/copy_memory.h"
#include "prefetch/runtime/managed_memory.h"
#include "prefetch/runtime/runner/step_runner.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/verify/verify.h"
#include "tests/um/cuda/declared_uses.h"
#include "tests/um/cuda/recording_api.h"
#include "tests/um/cuda/swapped_block.h"
#include "um/cuda/cuda_device.h"
#include "um/device.h"
#include "um/memory.h"

namespace spillway::um {
namespace {

using prefetch::DataBlock;
using prefetch::DataId;
using prefetch::Plan;
using prefetch::Position;
using prefetch::Task;
using prefetch::TaskGraph;
using prefetch::TaskId;
using Log = std::vector<std::string>;
using namespace std::chrono_literals;

// A plan on a device with events that fire on demand. Kernels only declare their uses.
class PlannedStep : public ::testing::Test {
 protected:
  ~PlannedStep() override {
    api.let_go();
    if (step.joinable()) step.join();
    EXPECT_LE(ledger->peak(), plan.budget);
    memory.reset();
  }

  DataId add_block(const char* name, std::uint64_t count) {
    return graph.add(DataBlock{.name = name, .size = pages(count)});
  }

  void prepare() {
    const auto verdict = prefetch::verify(graph, plan);
    ASSERT_TRUE(std::holds_alternative<prefetch::Verified>(verdict))
        << std::get<prefetch::Violation>(verdict).reason;
    layout.emplace(graph, plan);
    pinned.emplace(graph, layout->block_sizes, std::vector<std::byte*>(graph.data.size(), nullptr),
                   Range{});
    ledger.emplace(plan.budget);
  }

  void start_managed() {
    prepare();
    managed = device.make_managed_space(
        {.size = layout->placement.extent, .near = plan.budget, .page = kPage, .gpu = gpu},
        *ledger);
    const prefetch::SlabAddress address{*layout, *pinned, managed->slab()};
    memory = std::make_unique<prefetch::ManagedMemory>(*layout, address, managed->hints());
    start();
  }

  void start_copy() {
    prepare();
    copied = device.make_copy_space(
        {.size = prefetch::FarPlacement{*layout}.extent, .near = plan.budget});
    memory = std::make_unique<prefetch::CopyMemory>(*layout, *pinned, copied->near(),
                                                    copied->copies(), *ledger);
    start();
  }

  // Starts one step in a thread; step.join() waits for its end.
  void start() {
    api.hold();
    static_cast<void>(api.take_log());
    runner = std::make_unique<prefetch::StepRunner>(plan, *memory, *compute);
    step = std::thread{[this] {
      compute->enqueue([this] {
        timeline = runner->run([this](Position position) {
          const prefetch::TaskRun& run = plan.runs[position];
          api.launch(compute->native(), graph[run.task].name, declared_uses(graph, run, *memory));
        });
      });
      try {
        compute->synchronize();
      } catch (const CudaError& error) {
        failure = error.code();
      }
    }};
  }

  // Waits until the run at `position` is launched completely; its two events are the last ones
  // recorded.
  void wait_until_launched(Position position) {
    api.wait_until_recorded("compute", 2 * (position + 1));
  }
  // Lets the GPU finish the next launched run.
  void finish_run(Nanoseconds begin = 0ns, Nanoseconds end = 0ns) {
    api.finish("compute", begin);
    api.finish("compute", end);
  }
  void end_step() {
    api.let_go();
    step.join();
  }

  std::unique_ptr<RecordingApi> owned = std::make_unique<RecordingApi>();
  RecordingApi& api = *owned;
  CudaDevice device{std::move(owned), {}};
  std::unique_ptr<CudaStream> compute = device.make_cuda_stream("compute");

  TaskGraph graph;
  Plan plan;
  GpuOptions gpu;
  std::optional<prefetch::StepLayout> layout;
  std::optional<prefetch::PinnedBlocks> pinned;
  std::optional<Ledger> ledger;
  std::unique_ptr<ManagedSpace> managed;
  std::unique_ptr<CopySpace> copied;
  std::unique_ptr<prefetch::StepMemory> memory;
  std::unique_ptr<prefetch::StepRunner> runner;
  prefetch::Timeline timeline;
  cudaError_t failure = cudaSuccess;
  std::thread step;
};

class SwappedBlockStep : public PlannedStep {
 protected:
  SwappedBlockStep() {
    const SwappedBlock subject;
    graph = subject.graph;
    plan = subject.plan;
  }
};

TEST_F(SwappedBlockStep, ManagedGivesEachHintWhenItsConditionHolds) {
  start_managed();
  wait_until_launched(0);
  EXPECT_EQ(api.take_log(), (Log{"um upkeep: discard and prefetch near slab 0+2",
                                 "um upkeep: record", "compute: wait for um upkeep",
                                 "compute: record", "compute: make a", "compute: record"}));
  finish_run();
  api.wait_until_noted("um out: record");
  EXPECT_EQ(api.take_log(), (Log{"um out: prefetch far slab 0+2", "um out: record"}));
  EXPECT_EQ(ledger->in_use(), pages(2));
  api.finish("um out");
  wait_until_launched(1);
  EXPECT_EQ(api.take_log(),
            (Log{"um upkeep: discard and prefetch near slab 2+1", "um upkeep: record",
                 "compute: wait for um upkeep", "um upkeep: discard and prefetch near slab 3+1",
                 "um upkeep: record", "compute: wait for um upkeep", "compute: record",
                 "compute: make b", "compute: record"}));
  EXPECT_EQ(ledger->in_use(), pages(0));  // launched, and no later run needs it
  finish_run();
  api.wait_until_noted("um in: record");
  wait_until_launched(2);  // although the prefetch has not ended; b's page is near
  EXPECT_EQ(api.take_log(),
            (Log{"um in: prefetch near slab 0+2", "um in: record", "compute: wait for um in",
                 "compute: record", "compute: use a", "compute: record"}));
  end_step();
  EXPECT_EQ(ledger->in_use(), pages(0));
  EXPECT_EQ(ledger->peak(), pages(3));
}

TEST_F(SwappedBlockStep, ManagedDiscardsWhatNobodyNeedsWhenAskedTo) {
  gpu.discards = true;
  start_managed();
  wait_until_launched(0);
  finish_run();
  api.finish("um out");
  wait_until_launched(1);
  static_cast<void>(api.take_log());
  finish_run();
  for (int call = 0; call < 5; ++call) api.finish("um upkeep");  // populates 3 times, drops twice
  api.wait_until_noted("um upkeep: discard slab 3+1");
  wait_until_launched(2);
  end_step();
  EXPECT_EQ(ledger->in_use(), pages(0));
}

TEST_F(SwappedBlockStep, CopyCopiesEachBlockWhenItsConditionHolds) {
  start_copy();
  wait_until_launched(0);
  EXPECT_EQ(api.take_log(), (Log{"compute: record", "compute: make a", "compute: record"}));
  finish_run();
  api.wait_until_noted("copy out: record");
  EXPECT_EQ(api.take_log(), (Log{"copy out: copy device 0+2 to pinned 0", "copy out: record"}));
  EXPECT_EQ(ledger->in_use(), pages(2));
  api.finish("copy out");
  wait_until_launched(1);
  EXPECT_EQ(api.take_log(), (Log{"compute: record", "compute: make b", "compute: record"}));
  finish_run();
  api.wait_until_noted("copy in: record");
  EXPECT_EQ(api.take_log(), (Log{"copy in: copy pinned 0+2 to device 0", "copy in: record"}));
  api.finish("copy in");
  wait_until_launched(2);
  EXPECT_EQ(api.take_log(), (Log{"compute: record", "compute: use a", "compute: record"}));
  end_step();
  EXPECT_EQ(ledger->peak(), pages(3));
}

TEST_F(SwappedBlockStep, TimesRunsByTheGpusClock) {
  start_managed();
  wait_until_launched(0);
  finish_run(1ms, 4ms);
  api.finish("um out");
  wait_until_launched(1);
  finish_run(5ms, 7ms);
  api.finish("um in");
  wait_until_launched(2);
  finish_run(9ms, 15ms);
  step.join();
  ASSERT_EQ(timeline.runs.size(), 3U);
  EXPECT_EQ(timeline.runs[0].end - timeline.runs[0].begin, 3ms);
  EXPECT_EQ(timeline.runs[1].begin - timeline.runs[0].end, 1ms);
  EXPECT_EQ(timeline.runs[1].end - timeline.runs[1].begin, 2ms);
  EXPECT_EQ(timeline.runs[2].end - timeline.runs[2].begin, 6ms);
  EXPECT_EQ(timeline.offloads.size(), 1U);
  EXPECT_EQ(timeline.prefetches.size(), 1U);
}

TEST_F(SwappedBlockStep, AFailedMoveEndsTheStepWithWhatItFailedWith) {
  api.fail("um out: prefetch", cudaErrorInvalidValue);
  start_managed();
  wait_until_launched(0);
  finish_run();
  api.wait_until_noted("um out: prefetch far slab 0+2");
  api.let_go();
  step.join();
  EXPECT_EQ(failure, cudaErrorInvalidValue);
}

// A discard that fails in its own thread must not block the step.
TEST_F(SwappedBlockStep, AFailureAtTheEndOfARunEndsTheStep) {
  gpu.discards = true;
  api.fail("um upkeep: discard slab", cudaErrorInvalidValue);
  start_managed();
  wait_until_launched(0);
  end_step();
  EXPECT_EQ(failure, cudaErrorInvalidValue);
}

// b dies when c is made; then d overwrites its page, and a's page when a has died. Nothing moves,
// so everything is launched at once. Near pages are not populated again, and pages of a later run
// are not dropped.
TEST_F(PlannedStep, LaunchesAheadOfTheGpuAsFarAsThePlanAllows) {
  const DataId a = add_block("a", 1);
  const DataId b = add_block("b", 1);
  const DataId c = add_block("c", 1);
  const DataId d = add_block("d", 1);
  graph.add(Task{.name = "make a", .writes = {a}});
  graph.add(Task{.name = "make b", .reads = {a}, .writes = {b}});
  graph.add(Task{.name = "make c", .reads = {b}, .writes = {c}});
  graph.add(Task{.name = "make d", .reads = {c}, .writes = {d}});
  plan = {.graph = fingerprint(graph), .budget = pages(2), .page = kPage};
  plan.runs = prefetch::runs_in_order(graph);
  for (Position p = 0; p < 4; ++p) plan.runs[p].after.runs = p;
  gpu.discards = true;
  start_managed();
  wait_until_launched(3);  // although nothing has ended
  EXPECT_EQ(api.take_log(),
            (Log{"um upkeep: discard and prefetch near slab 0+1", "um upkeep: record",
                 "compute: wait for um upkeep", "compute: record", "compute: make a",
                 "compute: record", "um upkeep: discard and prefetch near slab 1+1",
                 "um upkeep: record", "compute: wait for um upkeep", "compute: record",
                 "compute: make b", "compute: record", "compute: record", "compute: make c",
                 "compute: record", "compute: record", "compute: make d", "compute: record"}));
  EXPECT_EQ(ledger->peak(), pages(2));
  for (int run = 0; run < 4; ++run) finish_run();
  end_step();
  EXPECT_EQ(api.take_log(),
            (Log{"um upkeep: discard slab 0+1", "um upkeep: record", "um upkeep: discard slab 1+1",
                 "um upkeep: record", "compute: record"}));
}

// Each driver call fails once, in a training of its own. The training ends with that failure,
// unless a destructor made the call, and frees everything.

constexpr cudaError_t kFailure = cudaErrorLaunchFailure;

// A record of driver calls that outlives the device.
struct Calls {
  std::size_t failing = 0;  // the number of the failing call, from 1
  std::size_t count = 0;
  std::size_t of_steps = 0;  // calls until the last step had ended
  std::string failed;        // the name of the failed call
  std::size_t left = 0;      // driver objects that were never destroyed
};

class FailingApi final : public RecordingApi {
 public:
  explicit FailingApi(Calls& calls) : calls_{calls} {}
  ~FailingApi() override { calls_.left = live_objects(); }

  NearMemory memory() override { return pass("memory"), RecordingApi::memory(); }
  cudaStream_t make_stream(const std::string& name) override {
    return pass("make_stream"), RecordingApi::make_stream(name);
  }
  void synchronize(cudaStream_t stream) override {
    RecordingApi::synchronize(stream);
    pass("synchronize stream");
  }
  bool is_captured(cudaStream_t stream) override {
    return pass("is_captured"), RecordingApi::is_captured(stream);
  }
  cudaEvent_t make_event() override { return pass("make_event"), RecordingApi::make_event(); }
  void record(cudaEvent_t event, cudaStream_t stream) override {
    pass("record");
    RecordingApi::record(event, stream);
  }
  void wait(cudaStream_t stream, cudaEvent_t event) override {
    pass("wait");
    RecordingApi::wait(stream, event);
  }
  bool has_fired(cudaEvent_t event) override {
    return pass("has_fired"), RecordingApi::has_fired(event);
  }
  void synchronize(cudaEvent_t event) override {
    RecordingApi::synchronize(event);
    pass("synchronize event");
  }
  Nanoseconds elapsed(cudaEvent_t from, cudaEvent_t to) override {
    return pass("elapsed"), RecordingApi::elapsed(from, to);
  }
  std::byte* allocate_device(Bytes size) override {
    return pass("allocate_device"), RecordingApi::allocate_device(size);
  }
  std::byte* allocate_managed(Bytes size) override {
    return pass("allocate_managed"), RecordingApi::allocate_managed(size);
  }
  std::byte* allocate_pinned(Bytes size) override {
    return pass("allocate_pinned"), RecordingApi::allocate_pinned(size);
  }
  void copy(std::span<const std::byte> from, std::byte* to, cudaStream_t stream) override {
    pass("copy");
    RecordingApi::copy(from, to, stream);
  }
  void prefetch(Range range, MemoryTier to, cudaStream_t stream) override {
    pass("prefetch");
    RecordingApi::prefetch(range, to, stream);
  }
  void discard(std::span<const Range> ranges, cudaStream_t stream) override {
    pass("discard");
    RecordingApi::discard(ranges, stream);
  }
  void discard_and_prefetch_near(std::span<const Range> ranges, cudaStream_t stream) override {
    pass("discard_and_prefetch_near");
    RecordingApi::discard_and_prefetch_near(ranges, stream);
  }
  void advise(Range range, Advice advice) override {
    pass("advise");
    RecordingApi::advise(range, advice);
  }

 private:
  void pass(const char* name) {
    const std::lock_guard lock{counting_};
    if (++calls_.count != calls_.failing) return;
    calls_.failed = name;
    check(kFailure);
  }

  std::mutex counting_;
  Calls& calls_;
};

void run_steps(const SwappedBlock& subject, prefetch::StepMemory& memory, CudaStream& compute,
               RecordedGpu& gpu) {
  prefetch::StepRunner runner{subject.plan, memory, compute};
  for (int step = 0; step < 2; ++step) {
    compute.enqueue([&] {
      static_cast<void>(runner.run([&](Position position) {
        const prefetch::TaskRun& run = subject.plan.runs[position];
        gpu.launch(compute.native(), subject.graph[run.task].name,
                   declared_uses(subject.graph, run, memory));
      }));
    });
    compute.synchronize();
  }
}

enum class Moved : std::uint8_t { kByHints, kByHintsAndDiscards, kByCopies };

// Runs two steps on a device opened for them.
void train(const SwappedBlock& subject, Moved moved, Calls& calls) {
  auto owned = std::make_unique<FailingApi>(calls);
  RecordedGpu& gpu = *owned;
  CudaDevice device{std::move(owned), {}};
  const std::unique_ptr<CudaStream> compute = device.make_cuda_stream("compute");
  const prefetch::StepLayout layout{subject.graph, subject.plan};
  const prefetch::PinnedBlocks pinned{subject.graph, layout.block_sizes,
                                      std::vector<std::byte*>(subject.graph.data.size(), nullptr),
                                      Range{}};
  Ledger ledger{subject.plan.budget};
  if (moved != Moved::kByCopies) {
    const auto space =
        device.make_managed_space({.size = layout.placement.extent,
                                   .near = subject.plan.budget,
                                   .page = kPage,
                                   .gpu = {.discards = moved == Moved::kByHintsAndDiscards}},
                                  ledger);
    prefetch::ManagedMemory memory{layout, prefetch::SlabAddress{layout, pinned, space->slab()},
                                   space->hints()};
    run_steps(subject, memory, *compute, gpu);
    space->hints().check();
    calls.of_steps = calls.count;
  } else {
    const auto space = device.make_copy_space(
        {.size = prefetch::FarPlacement{layout}.extent, .near = subject.plan.budget});
    prefetch::CopyMemory memory{layout, pinned, space->near(), space->copies(), ledger};
    run_steps(subject, memory, *compute, gpu);
    calls.of_steps = calls.count;
  }
  EXPECT_LE(ledger.peak(), subject.plan.budget);
}

// Gtest requires this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(Moved moved, std::ostream* out) {
  *out << (moved == Moved::kByCopies  ? "Copy"
           : moved == Moved::kByHints ? "Managed"
                                      : "Discarding");
}

class FailingCalls : public ::testing::TestWithParam<Moved> {};

TEST_P(FailingCalls, EndTheTrainingAndNothingIsLeft) {
  const SwappedBlock subject;
  for (std::size_t failing = 1;; ++failing) {
    Calls calls{.failing = failing};
    try {
      train(subject, GetParam(), calls);
      const bool is_outlasted = !calls.failed.empty();
      EXPECT_TRUE(!is_outlasted || failing > calls.of_steps) << calls.failed;
    } catch (const CudaError& error) {
      EXPECT_EQ(error.code(), kFailure);
      EXPECT_FALSE(calls.failed.empty());
    }
    EXPECT_EQ(calls.left, 0U) << "call " << failing << ", " << calls.failed;
    if (calls.failed.empty()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(EachMode, FailingCalls,
                         ::testing::Values(Moved::kByHints, Moved::kByHintsAndDiscards,
                                           Moved::kByCopies),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace spillway::um
