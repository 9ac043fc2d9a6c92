#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "tests/src/host/kernel_runner.h"
#include "um/bytes.h"
#include "um/cuda/driver/check.h"

namespace spillway::cuda {

/// Device memory, aligned to 256 bytes like the runtime's. All bytes are 0xFF at first (NaN as
/// numbers), and guard bytes follow. An emulated device needs no guard bytes, since it checks each
/// access.
class DeviceBlock {
 public:
  explicit DeviceBlock(um::Bytes size) : size_{size.count()} {
    void* memory = nullptr;
    um::check(cudaMalloc(&memory, size_ + kGuard));
    memory_.reset(static_cast<std::byte*>(memory));
    um::check(cudaMemset(memory, 0xFF, size_ + kGuard));
    um::check(cudaDeviceSynchronize());
  }

  [[nodiscard]] std::byte* data() { return memory_.get(); }
  /// Returns the contents after all work is done.
  [[nodiscard]] std::vector<std::byte> bytes() const { return copy(0, size_); }
  template <class T>
  [[nodiscard]] std::vector<T> numbers() const {
    const std::vector<std::byte> raw = bytes();
    std::vector<T> result(raw.size() / sizeof(T));
    if (!raw.empty()) std::memcpy(result.data(), raw.data(), result.size() * sizeof(T));
    return result;
  }
  void write(std::span<const std::byte> bytes) {
    ASSERT_EQ(bytes.size(), size_);
    um::check(cudaMemcpy(memory_.get(), bytes.data(), size_, cudaMemcpyHostToDevice));
    um::check(cudaDeviceSynchronize());
  }
  [[nodiscard]] bool guard_is_intact() const {
    return copy(size_, kGuard) == std::vector<std::byte>(kGuard, std::byte{0xFF});
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { (void)cudaFree(memory); }
  };
#ifdef SPILLWAY_KERNELS_ON_PROCESSOR
  static constexpr std::size_t kGuard = 0;
#else
  static constexpr std::size_t kGuard = 256;
#endif

  [[nodiscard]] std::vector<std::byte> copy(std::size_t from, std::size_t count) const {
    std::vector<std::byte> result(count);
    um::check(cudaDeviceSynchronize());
    um::check(cudaMemcpy(result.data(), memory_.get() + from, count, cudaMemcpyDeviceToHost));
    return result;
  }

  std::size_t size_;
  std::unique_ptr<std::byte, Free> memory_;
};

/// The same operand on the host and on the device.
struct Block {
  host::Block host;
  DeviceBlock device;

  /// Returns the bytes on the device.
  [[nodiscard]] std::vector<std::byte> bytes() const { return device.bytes(); }
  template <class T>
  [[nodiscard]] std::vector<T> numbers() const {
    return device.numbers<T>();
  }
};

}  // namespace spillway::cuda
