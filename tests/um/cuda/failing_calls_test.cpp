#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "prefetch/runtime/copy_memory.h"
#include "prefetch/runtime/managed_memory.h"
#include "prefetch/runtime/runner/step_runner.h"
#include "prefetch/runtime/step_layout.h"
#include "tests/um/cuda/declared_uses.h"
#include "tests/um/cuda/recording_api.h"
#include "tests/um/cuda/swapped_block.h"
#include "um/cuda/cuda_device.h"
#include "um/device.h"
#include "um/memory.h"

// Each driver call fails once, in a training of its own. The training ends with that failure,
// unless a destructor made the call, and frees everything.

namespace spillway::um {
namespace {

using prefetch::Position;

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
