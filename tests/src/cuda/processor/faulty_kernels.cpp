#include "tests/src/cuda/processor/faulty_kernels.h"

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"

namespace spillway::processor {
namespace {

constexpr unsigned kBlock = 64;

__global__ void add_in_shared_memory(Mistake mistake, float* numbers) {
  __shared__ float of_block[kBlock];
  const std::size_t own = cuda::first_item();
  const unsigned other = (threadIdx.x + 1) % kBlock;
  for (int turn = 0; turn < 2; ++turn) {
    if (mistake != Mistake::kUnwritten || threadIdx.x > 0) of_block[threadIdx.x] = numbers[own];
    if (mistake != Mistake::kNoBarrier) __syncthreads();
    numbers[own] += of_block[other];
    if (mistake != Mistake::kNoSecondBarrier) __syncthreads();
  }
  const bool is_in_first_half = threadIdx.x < kBlock / 2;
  if (mistake == Mistake::kBarrierInBranch && is_in_first_half) __syncthreads();
  if (mistake != Mistake::kTwoBarriers) return;
  if (is_in_first_half) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

// Adds through the dynamic shared memory of the launch.
__global__ void add_in_launch_memory(Mistake mistake, float* numbers) {
  float* const of_block = cuda::shared_floats();
  const std::size_t own = cuda::first_item();
  of_block[threadIdx.x] = numbers[own];
  if (mistake == Mistake::kBehindShared) of_block[kBlock] = 0.F;
  __syncthreads();
  numbers[own] += of_block[(threadIdx.x + 1) % kBlock];
}

// Adds within warps: each lane adds its neighbour's number.
__global__ void add_in_warps(Mistake mistake, float* numbers) {
  const unsigned lane = threadIdx.x % 32;
  if (mistake == Mistake::kHalfWarp && lane < 16) return;
  const float own = numbers[cuda::first_item()];
  const float other = __shfl_xor_sync(0xFFFFFFFF, own, 1);
  if (mistake == Mistake::kNoWarpBarrier && lane == 0) numbers[cuda::first_item() + 1] = 0.F;
  __syncwarp();
  numbers[cuda::first_item()] = own + other;
}

// Adds one to each number.
__global__ void add_one(Mistake mistake, float* numbers, std::size_t count) {
  float* first = mistake == Mistake::kOneTooFew ? numbers - 1 : numbers;
  if (mistake == Mistake::kBetween) {
    first = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(numbers) + 2);
  }
  const std::size_t end = mistake == Mistake::kOneTooMuch ? count + 1
                          : mistake == Mistake::kBetween  ? count - 1
                                                          : count;
  const std::size_t own = mistake == Mistake::kSameNumber ? threadIdx.x : cuda::first_item();
  for (std::size_t i = own; i < end; i += cuda::item_stride()) first[i] += 1.F;
}

}  // namespace

void run_kernel_with(Mistake mistake, float* numbers, std::size_t count) {
  cuda::Grid grid{.blocks = dim3{static_cast<unsigned>(count / kBlock)},
                  .threads = dim3{kBlock},
                  .shared_bytes = kBlock * sizeof(float)};
  switch (mistake) {
    case Mistake::kTooMuchShared:
      grid.shared_bytes = cuda::kSharedBytes + 1;
      [[fallthrough]];
    case Mistake::kBehindShared:
      return cuda::enqueue(nullptr, grid, add_in_launch_memory, mistake, numbers);
    case Mistake::kNoneInWarps:
    case Mistake::kNoWarpBarrier:
    case Mistake::kHalfWarp:
      return cuda::enqueue(nullptr, grid, add_in_warps, mistake, numbers);
    case Mistake::kNoneInMemory:
    case Mistake::kOneTooMuch:
    case Mistake::kOneTooFew:
    case Mistake::kBetween:
    case Mistake::kSameNumber:
      return cuda::enqueue(nullptr, grid, add_one, mistake, numbers, count);
    default:
      return cuda::enqueue(nullptr, grid, add_in_shared_memory, mistake, numbers);
  }
}

}  // namespace spillway::processor
