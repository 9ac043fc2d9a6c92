#pragma once

#include <gtest/gtest.h>

#include <future>
#include <optional>

#include "tests/um/cuda/recording_api.h"
#include "um/cuda/managed/cuda_managed_space.h"

namespace spillway::um {

// Four pages of 2 MiB with room for three near, and one compute stream.
class SmallSpace : public ::testing::Test {
 protected:
  static ManagedOptions options() { return {.size = 8_MiB, .near = 6_MiB, .page = 2_MiB}; }

  static ManagedOptions discarding() {
    ManagedOptions wanted = options();
    wanted.gpu.discards = true;
    return wanted;
  }

  void make(const ManagedOptions& wanted, const CudaFacts& facts = RecordingApi::h200()) {
    api.emplace(facts);
    memory.emplace(*api, std::nullopt);
    compute.emplace(*api);
    stream = api->make_stream("compute");
    compute->add(stream);
    space.emplace(*api, *memory, *compute, nullptr, wanted, ledger);
    static_cast<void>(api->take_log());
  }
  ~SmallSpace() override {
    if (api) api->let_go();
  }
  [[nodiscard]] Range pages(std::size_t first, std::size_t count) {
    return space->slab().subspan(first * (2_MiB).count(), count * (2_MiB).count());
  }
  [[nodiscard]] std::exception_ptr move(std::size_t first, std::size_t count, MemoryTier tier) {
    std::promise<std::exception_ptr> ended;
    space->hints().prefetch(pages(first, count), tier, [&](std::exception_ptr failure) {
      ended.set_value(std::move(failure));
    });
    return ended.get_future().get();
  }

  // Runs a kernel on the pages and waits, as a step does between a hint and a move.
  void use(std::size_t first, std::size_t count) {
    const Use written{.range = pages(first, count), .access = Access::kWrite};
    api->launch(stream, "use", {&written, 1});
    api->synchronize(stream);
  }

  Ledger ledger{6_MiB};
  std::optional<RecordingApi> api;
  cudaStream_t stream = nullptr;  // runs the kernels
  std::optional<CudaManagedMemory> memory;
  std::optional<ComputeStreams> compute;
  std::optional<CudaManagedSpace> space;
};

}  // namespace spillway::um
