#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/gpu.h"
#include "um/bytes.h"
#include "um/cuda/driver/check.h"

namespace spillway::um {
namespace {

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
