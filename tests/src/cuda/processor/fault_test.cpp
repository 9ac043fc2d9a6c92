#include <gtest/gtest.h>

#include <numeric>
#include <ostream>
#include <string>

#include "src/cuda/kernels/kernels.h"
#include "tests/src/cuda/device_block.h"
#include "tests/src/cuda/processor/faulty_kernels.h"
#include "tests/src/cuda/processor/function_status.h"
#include "tests/src/cuda/processor/grid_run.h"
#include "um/cuda/driver/check.h"

namespace spillway::processor {
namespace {

constexpr std::size_t kCount = 128;  // two blocks of 64 threads
constexpr std::size_t kBlock = 64;

struct Numbers {
  Numbers() { block.write(std::as_bytes(std::span{values})); }
  [[nodiscard]] float* data() { return reinterpret_cast<float*>(block.data()); }

  const std::vector<float> values = [] {
    std::vector<float> result(kCount);
    std::iota(result.begin(), result.end(), 1.F);
    return result;
  }();
  cuda::DeviceBlock block{um::Bytes{kCount * sizeof(float)}};
};

// Computes a[i] + a[i + 1], and then the same of the sums.
TEST(SoundKernel, AddsThroughSharedMemory) {
  Numbers numbers;
  run_kernel_with(Mistake::kNone, numbers.data(), kCount);
  std::vector<float> expected = numbers.values;
  for (int turn = 0; turn < 2; ++turn) {
    const std::vector<float> before = expected;
    for (std::size_t i = 0; i < kCount; ++i) {
      expected[i] += before[i / kBlock * kBlock + (i + 1) % kBlock];
    }
  }
  EXPECT_EQ(numbers.block.numbers<float>(), expected);
}

TEST(SoundKernel, AddsWithinWarps) {
  Numbers numbers;
  run_kernel_with(Mistake::kNoneInWarps, numbers.data(), kCount);
  std::vector<float> expected = numbers.values;
  for (std::size_t i = 0; i < kCount; ++i) expected[i] += numbers.values[i ^ 1U];
  EXPECT_EQ(numbers.block.numbers<float>(), expected);
}

TEST(SoundKernel, AddsToEachNumberOnce) {
  Numbers numbers;
  run_kernel_with(Mistake::kNoneInMemory, numbers.data(), kCount);
  std::vector<float> expected = numbers.values;
  for (float& value : expected) value += 1;
  EXPECT_EQ(numbers.block.numbers<float>(), expected);
}

// Three blocks: only the first and the last one write.
TEST(OnlyOuterBlocksRun, TheFirstAndTheLast) {
  cuda::DeviceBlock block{um::Bytes{3 * kBlock * sizeof(float)}};
  block.write(std::vector<std::byte>(3 * kBlock * sizeof(float)));
  const OnlyOuterBlocks few;
  run_kernel_with(Mistake::kNoneInMemory, reinterpret_cast<float*>(block.data()), 3 * kBlock);
  const std::vector<float> numbers = block.numbers<float>();
  EXPECT_EQ(numbers[kBlock - 1], 1);
  EXPECT_EQ(numbers[kBlock], 0);
  EXPECT_EQ(numbers[2 * kBlock - 1], 0);
  EXPECT_EQ(numbers[2 * kBlock], 1);
}

TEST(TooMuchSharedMemory, IsRefusedAsByADevice) {
  Numbers numbers;
  EXPECT_THROW(run_kernel_with(Mistake::kTooMuchShared, numbers.data(), kCount), um::CudaError);
  EXPECT_EQ(numbers.block.numbers<float>(), numbers.values);
}

struct FaultCase {
  Mistake mistake;
  std::string kernel;
  std::string text;
};

// Name that gtest looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const FaultCase& c, std::ostream* out) { *out << c.text; }

class Fault : public ::testing::TestWithParam<FaultCase> {};

TEST_P(Fault, IsFoundAndSaysWhichKernel) {
  Numbers numbers;
  try {
    run_kernel_with(GetParam().mistake, numbers.data(), kCount);
    FAIL() << "found nothing";
  } catch (const KernelFault& fault) {
    const std::string what = fault.what();
    EXPECT_NE(what.find(GetParam().kernel), std::string::npos) << what;
    EXPECT_NE(what.find(GetParam().text), std::string::npos) << what;
  }
  // A fault does not affect the next launch.
  run_kernel_with(Mistake::kNone, numbers.data(), kCount);
}

INSTANTIATE_TEST_SUITE_P(
    Barriers, Fault,
    ::testing::Values(FaultCase{Mistake::kBarrierInBranch, "add_in_shared_memory",
                                "divergent barrier"},
                      FaultCase{Mistake::kTwoBarriers, "add_in_shared_memory", "divergent barrier"},
                      FaultCase{Mistake::kHalfWarp, "add_in_warps", "divergent barrier"}));

INSTANTIATE_TEST_SUITE_P(Races, Fault,
                         ::testing::Values(FaultCase{Mistake::kNoBarrier, "add_in_shared_memory",
                                                     "nobody in the block has written"},
                                           FaultCase{Mistake::kNoSecondBarrier,
                                                     "add_in_shared_memory", "a race: writes"},
                                           FaultCase{Mistake::kNoWarpBarrier, "add_in_warps",
                                                     "a race: "},
                                           FaultCase{Mistake::kSameNumber, "add_one", "a race: "}));

INSTANTIATE_TEST_SUITE_P(
    Memory, Fault,
    ::testing::Values(
        FaultCase{Mistake::kUnwritten, "add_in_shared_memory", "nobody in the block has written"},
        FaultCase{Mistake::kBehindShared, "add_in_launch_memory", "behind the launch's shared"},
        FaultCase{Mistake::kBetween, "add_one", "4 bytes that is not aligned"},
        FaultCase{Mistake::kOneTooMuch, "add_one", "4 bytes of foreign memory"},
        FaultCase{Mistake::kOneTooFew, "add_one", "4 bytes of foreign memory"}));

}  // namespace
}  // namespace spillway::processor

namespace spillway::cuda {
namespace {

class KernelCheck : public ::testing::Test {
 protected:
  ~KernelCheck() override { processor::set_function_status(cudaSuccess); }
  const um::CudaFacts facts_{.name = "NVIDIA A100", .compute_capability = 80};
};

TEST_F(KernelCheck, PassesWhereTheDeviceTakesTheKernels) {
  EXPECT_NO_THROW(expect_kernels_for_this_gpu(facts_));
}

TEST_F(KernelCheck, SaysWhatToBuildForAnotherGpu) {
  for (const cudaError_t status :
       {cudaErrorNoKernelImageForDevice, cudaErrorInvalidDeviceFunction}) {
    processor::set_function_status(status);
    try {
      expect_kernels_for_this_gpu(facts_);
      FAIL() << "refuses kernels for other GPUs";
    } catch (const um::CudaError& error) {
      FAIL() << error.what();
    } catch (const um::Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("than this NVIDIA A100"), std::string::npos) << what;
      EXPECT_NE(what.find("-DCMAKE_CUDA_ARCHITECTURES=80"), std::string::npos) << what;
    }
  }
}

TEST_F(KernelCheck, LetsOtherFailuresThrough) {
  processor::set_function_status(cudaErrorInvalidValue);
  EXPECT_THROW(expect_kernels_for_this_gpu(facts_), um::CudaError);
}

}  // namespace
}  // namespace spillway::cuda
