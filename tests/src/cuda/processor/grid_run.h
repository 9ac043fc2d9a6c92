#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>

#include "um/error.h"

/// CUDA's own, which all kernels are written with.
struct uint3 {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;
};
struct dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

namespace spillway::processor {

/// Which thread runs: what kernels know as threadIdx, blockIdx, blockDim and gridDim.
struct Place {
  uint3 thread;
  uint3 block;
  dim3 block_size;
  dim3 grid_size;
};
extern Place place;

/// A kernel did what is undefined on a device: `what()` says what, in which kernel, and where.
class KernelFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Launch {
  dim3 blocks;
  dim3 threads;
  std::size_t shared_bytes;
  const void* kernel;
};

/// Runs `thread` for each thread of the launch, with `place` set: the blocks one after the other,
/// the threads of a block in turns from one barrier to the next. Throws: KernelFault, when all is
/// done but for a block that cannot go on.
void run_grid(const Launch& launch, const std::function<void()>& thread);

/// While it lives, launches run only their first and their last block: for tensors of which no more
/// is looked at.
class OnlyOuterBlocks {
 public:
  OnlyOuterBlocks();
  OnlyOuterBlocks(const OnlyOuterBlocks&) = delete;
  OnlyOuterBlocks& operator=(const OnlyOuterBlocks&) = delete;
  ~OnlyOuterBlocks();
};

// To be called by the threads of a launch.

/// __syncthreads_count(): the sum of all threads' numbers.
int wait_for_block(int number, um::Caller where);
/// __syncwarp()
void wait_for_warp(unsigned lanes, um::Caller where);
/// __shfl_xor_sync(): what the lane `distance` away gave.
std::uint64_t exchange(unsigned lanes, std::uint64_t bits, unsigned distance, um::Caller where);

/// When an access to memory happens: two accesses of different threads are ordered when both are of
/// one block with a barrier between them.
struct Moment {
  std::uint64_t block : 24 = 0;  ///< from 1 on; 0: never
  std::uint64_t block_barriers : 20 = 0;
  std::uint64_t thread : 10 = 0;
  std::uint64_t warp_barriers : 10 = 0;  ///< since the last of the block

  [[nodiscard]] bool is_before(const Moment& later) const {
    if (block == 0 || (block == later.block && thread == later.thread)) return true;
    if (block != later.block) return false;
    if (block_barriers != later.block_barriers) return true;
    return thread / 32 == later.thread / 32 && warp_barriers != later.warp_barriers;
  }
};

/// The moment now. Requires: is_in_kernel().
[[nodiscard]] const Moment& now();
/// Whether it is a thread of a launch that runs.
[[nodiscard]] bool is_in_kernel();
[[nodiscard]] std::uint32_t launch_number();
/// Whether some of these bytes are dynamic shared memory of which the launch has less.
[[nodiscard]] bool is_behind_shared_bytes(const void* address, std::size_t size);
/// Whether the address is of a thread's own stack, or of `place`.
[[nodiscard]] bool is_private(const void* address);
/// Keeps the first fault of a launch. `code`: the machine's address of the guilty instruction.
void report_fault(const std::string& what, const void* code);

}  // namespace spillway::processor
