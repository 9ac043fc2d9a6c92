#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "prefetch/runtime/copy_memory.h"
#include "prefetch/runtime/managed_memory.h"
#include "prefetch/runtime/runner/step_runner.h"
#include "tests/gpu.h"
#include "tests/um/device_contract.h"
#include "tests/um/stream_contract.h"
#include "um/bytes.h"
#include "um/cuda/cuda_device.h"
#include "um/cuda/driver/check.h"
#include "um/error.h"

namespace spillway::um {
namespace {

using prefetch::DataBlock;
using prefetch::DataId;
using prefetch::Plan;
using prefetch::Position;
using prefetch::Task;
using prefetch::TaskGraph;
using prefetch::TaskId;

std::unique_ptr<CudaDevice> open_for_test(bool counts_faults = false) {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total));
  return open_cuda_device(
      0, {.managed_limit = testing::managed_limit(Bytes{free}), .counts_faults = counts_faults});
}

StreamMaker stream_maker() {
  const auto device = std::make_shared<std::unique_ptr<CudaDevice>>();
  return {.kind = "Gpu",
          .make =
              [device](const std::string& name) {
                if (*device == nullptr) *device = open_for_test();
                return (*device)->make_stream(name);
              },
          .require = testing::require_gpu};
}

DeviceMaker device_maker() {
  return {.kind = "Gpu",
          .open = [] { return open_for_test(); },
          .write =
              [](std::span<const std::byte> bytes, std::byte* near) {
                check(cudaDeviceSynchronize());  // only compute streams wait for near memory
                check(cudaMemcpy(near, bytes.data(), bytes.size(), cudaMemcpyDefault));
                check(cudaDeviceSynchronize());
              },
          .require = testing::require_gpu};
}

INSTANTIATE_TEST_SUITE_P(Gpu, StreamContract, ::testing::Values(stream_maker()), kind_of);
INSTANTIATE_TEST_SUITE_P(Gpu, DeviceContract, ::testing::Values(device_maker()), device_kind);

constexpr Bytes kPage = 2_MiB;

// Makes a, keeps it far while b is made, and reads it again: two blocks of 32 MiB in a budget of
// one and a half. The launches are memsets and copies of the driver.
class PlannedStepOnAGpu : public testing::GpuTest {
 protected:
  static constexpr Bytes kBlock = 32_MiB;

  PlannedStepOnAGpu() {
    a_ = graph_.add(DataBlock{.name = "a", .size = kBlock});
    b_ = graph_.add(DataBlock{.name = "b", .size = kBlock});
    graph_.add(Task{.name = "make a", .writes = {a_}});
    graph_.add(Task{.name = "make b", .writes = {b_}});
    graph_.add(Task{.name = "use a", .reads = {a_}, .writes = {a_}});
    plan_ = {.graph = fingerprint(graph_), .budget = 48_MiB, .page = kPage};
    plan_.runs = {{.task = TaskId{0}},
                  {.task = TaskId{1}, .after = {1, 1, 0}},
                  {.task = TaskId{2}, .after = {2, 1, 1}}};
    plan_.offloads = {{.data = a_, .size = kBlock, .after = {.runs = 1}}};
    plan_.prefetches = {{.data = a_, .size = kBlock, .after = {2, 1, 0}}};
  }

  void open(bool counts_faults) {
    device_ = open_for_test(counts_faults);
    compute_ = device_->make_cuda_stream("compute");
    result_ = Block{device_->memory(), kBlock};
    layout_.emplace(graph_, plan_);
    pinned_.emplace(graph_, layout_->block_sizes,
                    std::vector<std::byte*>(graph_.data.size(), nullptr), Range{});
  }

  void launch(prefetch::StepMemory& memory, Position position, int value) {
    const std::size_t size = kBlock.count();
    if (position == 0) check(cudaMemsetAsync(memory.address(a_), value, size, compute_->native()));
    if (position == 1) check(cudaMemsetAsync(memory.address(b_), 99, size, compute_->native()));
    if (position == 2) {
      check(cudaMemcpyAsync(result_.data(), memory.address(a_), size, cudaMemcpyDefault,
                            compute_->native()));
    }
  }

  void expect_steps_are_right(prefetch::StepMemory& memory, int steps) {
    prefetch::StepRunner runner{plan_, memory, *compute_};
    std::vector<std::byte> read(kBlock.count());
    for (int step = 1; step <= steps; ++step) {
      prefetch::Timeline timeline;
      compute_->enqueue([&] {
        timeline = runner.run([&](Position position) { launch(memory, position, step); });
        compute_->read(result_.bytes(), read);
      });
      compute_->synchronize();
      EXPECT_TRUE(std::ranges::all_of(
          read, [&](std::byte each) { return each == static_cast<std::byte>(step); }));
      for (const prefetch::Interval& run : timeline.runs) EXPECT_LE(run.begin, run.end);
      EXPECT_LE(timeline.runs[0].end, timeline.runs[1].begin);
    }
    EXPECT_LE(ledger_.peak(), plan_.budget);
    EXPECT_EQ(ledger_.in_use(), Bytes{});
  }

  void expect_managed_is_right(bool discards) {
    const auto space = device_->make_managed_space({.size = layout_->placement.extent,
                                                    .near = plan_.budget,
                                                    .page = kPage,
                                                    .gpu = {.discards = discards}},
                                                   ledger_);
    prefetch::ManagedMemory memory{
        *layout_, prefetch::SlabAddress{*layout_, *pinned_, space->slab()}, space->hints()};
    expect_steps_are_right(memory, 2);  // the first step also takes far memory from the system
    const Counters before = space->counters();
    expect_steps_are_right(memory, 3);
    const Counters steady = space->counters() - before;
    EXPECT_EQ(steady.bytes_offloaded, 3 * kBlock);
    EXPECT_EQ(steady.faults, 0U);
    EXPECT_EQ(steady.evictions, 0U);
  }

  TaskGraph graph_;
  DataId a_{};
  DataId b_{};
  Plan plan_;
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<CudaStream> compute_;
  Block result_;
  std::optional<prefetch::StepLayout> layout_;
  std::optional<prefetch::PinnedBlocks> pinned_;
  Ledger ledger_{48_MiB};
};

TEST_F(PlannedStepOnAGpu, GivesWhatItShouldInUnifiedMemory) {
  open(false);
  for (const bool discards : {true, false}) expect_managed_is_right(discards);
}

TEST_F(PlannedStepOnAGpu, TakesNoFaultAndNoEvictionOnceItIsSteady) {
  if (const auto reason = why_no_driver_counters()) GTEST_SKIP() << *reason;
  try {
    open(true);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  expect_managed_is_right(true);
}

TEST_F(PlannedStepOnAGpu, GivesWhatItShouldByExplicitCopies) {
  open(false);
  const auto space = device_->make_copy_space(
      {.size = prefetch::FarPlacement{*layout_}.extent, .near = plan_.budget});
  prefetch::CopyMemory memory{*layout_, *pinned_, space->near(), space->copies(), ledger_};
  expect_steps_are_right(memory, 3);
}

TEST_F(PlannedStepOnAGpu, RefusesMoreUnifiedMemoryThanItsLimit) {
  open(false);
  const Bytes limit = managed_limit_now() + 4_GiB;
  EXPECT_THROW(static_cast<void>(device_->make_managed_space(
                   {.size = round_up(limit, kPage), .near = 4_MiB, .page = kPage}, ledger_)),
               Error);
}

class CheckOnADevice : public testing::GpuTest {};

TEST_F(CheckOnADevice, DoesNotBlameTheNextCall) {
  EXPECT_THROW(check(cudaSetDevice(-1)), CudaError);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

class ManagedAllocation : public testing::GpuTest {};

TEST_F(ManagedAllocation, ComesBackFromTheDeviceAsItWasWritten) {
  constexpr Bytes kSize = 1_MiB;
  ASSERT_LE(kSize, managed_limit_now());
  void* managed = nullptr;
  void* plain = nullptr;
  check(cudaMallocManaged(&managed, kSize.count()));
  check(cudaMalloc(&plain, kSize.count()));
  std::memset(managed, 0x5A, kSize.count());

  // managed -> device -> managed: the device reads and writes the pages the host wrote
  check(cudaMemcpy(plain, managed, kSize.count(), cudaMemcpyDeviceToDevice));
  check(cudaMemset(managed, 0, kSize.count()));
  check(cudaMemcpy(managed, plain, kSize.count(), cudaMemcpyDeviceToDevice));
  check(cudaDeviceSynchronize());

  const auto* first = static_cast<const unsigned char*>(managed);
  EXPECT_TRUE(std::all_of(first, first + kSize.count(), [](auto byte) { return byte == 0x5A; }));
  check(cudaFree(plain));
  check(cudaFree(managed));
}

}  // namespace
}  // namespace spillway::um
