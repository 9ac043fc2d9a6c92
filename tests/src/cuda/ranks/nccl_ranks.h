#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/cuda/ranks/nccl_communicator.h"
#include "src/ranks/thread_communicator.h"
#include "tests/src/cuda/ranks/stand_in_nccl.h"
#include "tests/src/ranks/on_ranks.h"
#include "tests/um/cuda/recording_api.h"

namespace spillway::testing {

/// Loads the stand-in for NCCL, as the program does.
[[nodiscard]] inline cuda::NcclFunctions stand_in_functions() {
  return cuda::load_nccl(SPILLWAY_STAND_IN_NCCL);
}

/// Returns the settings of the stand-in.
[[nodiscard]] inline StandInNccl& stand_in() {
  void* const library = dlopen(SPILLWAY_STAND_IN_NCCL, RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<StandInFunction>(dlsym(library, kStandInFunction))();
}

/// Returns a rank's device with memory in RAM and the host's kernels.
[[nodiscard]] inline cuda::DeviceCommunicator::Device device_in_ram(um::CudaApi& api) {
  cuda::DeviceCommunicator::Device device;
  device.stream = std::make_unique<cuda::ExchangeStream>(api);
  class Kernels final : public NumberKernels {
   public:
    void add(std::span<float> to, std::span<const float> numbers) const override {
      host_number_kernels().add(to, numbers);
    }
    void copy(std::span<float> to, std::span<const float> from) const override {
      host_number_kernels().copy(to, from);
    }
    void divide(std::span<float> numbers, float by) const override {
      host_number_kernels().divide(numbers, by);
    }
    void fill(std::span<float> numbers, float value) const override {
      host_number_kernels().fill(numbers, value);
    }
  };
  device.kernels = std::make_unique<Kernels>();
  return device;
}

/// A rank of a test, with a thread as its process and a recording driver as its device.
struct NcclRank {
  Communicator& process;
  Communicator& device;
  um::RecordingApi& gpu;
};

/// Runs `work` on each rank of a group. Returns each rank's error; empty if it threw nothing.
[[nodiscard]] inline std::vector<std::string> on_nccl_ranks(
    ThreadRanks& group, const std::function<void(NcclRank)>& work,
    const CommunicatorOptions& options = {}) {
  return on_ranks(group, [&](Communicator& process) {
    um::RecordingApi gpu;
    cuda::NcclCommunicator device{process, device_in_ram(gpu), options, stand_in_functions()};
    work({process, device, gpu});
  });
}

}  // namespace spillway::testing
