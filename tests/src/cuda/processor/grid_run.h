#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "um/error.h"

/// CUDA's types, which all kernels use.
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

struct CUstream_st;

namespace spillway::processor {

/// The running thread: threadIdx, blockIdx, blockDim and gridDim for kernels.
struct Place {
  uint3 thread;
  uint3 block;
  dim3 block_size;
  dim3 grid_size;
};
extern Place place;

/// Reports undefined behaviour of a kernel on a device: `what()` says what, in which kernel, and
/// where.
class KernelFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Launch {
  dim3 blocks;
  dim3 threads;
  std::size_t shared_bytes;
  const void* kernel;
  std::shared_ptr<const void> arguments = {};  ///< what the threads read as their parameters
  std::size_t argument_bytes = 0;
};

/// Runs `thread` for each thread of the launch, with `place` set. Blocks run one after the other; a
/// block's threads take turns between barriers. Throws: KernelFault, after all blocks have run
/// except one that cannot continue.
void run_grid(const Launch& launch, const std::function<void()>& thread);
/// Launches a kernel on a stream and returns a cudaError_t. The tests of kernels run it at once;
/// the emulated GPU enqueues it.
[[nodiscard]] int launch(CUstream_st* stream, const Launch& launch, std::function<void()> thread);
/// Returns the name of the function at `code`, as binutils' addr2line finds it; otherwise the
/// address.
[[nodiscard]] std::string function_name(const void* code);

/// During its lifetime, launches run only their first and last block, for tests that look only at
/// the ends of a tensor.
class OnlyOuterBlocks {
 public:
  OnlyOuterBlocks();
  OnlyOuterBlocks(const OnlyOuterBlocks&) = delete;
  OnlyOuterBlocks& operator=(const OnlyOuterBlocks&) = delete;
  ~OnlyOuterBlocks();
};

/// Size of a launch, and its bytes of device memory.
struct LaunchCount {
  std::size_t blocks;
  std::size_t threads;   ///< per block
  std::size_t read;      ///< distinct
  std::size_t written;   ///< distinct
  std::size_t accessed;  ///< by all accesses together
};

/// Counts all launches during its lifetime.
class LaunchCounts {
 public:
  LaunchCounts();
  LaunchCounts(const LaunchCounts&) = delete;
  LaunchCounts& operator=(const LaunchCounts&) = delete;
  ~LaunchCounts();

  [[nodiscard]] const std::vector<LaunchCount>& launches() const { return launches_; }

 private:
  std::vector<LaunchCount> launches_;
};

// The threads of a launch call these functions.

/// __syncthreads_count(): returns the sum of all threads' numbers.
int wait_for_block(int number, um::Caller where);
/// __syncwarp()
void wait_for_warp(unsigned lanes, um::Caller where);
/// __shfl_xor_sync(): returns the bits of the lane `distance` away.
std::uint64_t exchange(unsigned lanes, std::uint64_t bits, unsigned distance, um::Caller where);

/// Time of a memory access. Accesses of different threads are ordered if both are in one block with
/// a barrier between them.
struct Moment {
  std::uint64_t block : 24 = 0;  ///< counts from 1; 0: never
  std::uint64_t block_barriers : 20 = 0;
  std::uint64_t thread : 10 = 0;
  std::uint64_t warp_barriers : 10 = 0;  ///< since the last barrier of the block

  [[nodiscard]] bool is_before(const Moment& later) const {
    if (block == 0 || (block == later.block && thread == later.thread)) return true;
    if (block != later.block) return false;
    if (block_barriers != later.block_barriers) return true;
    return thread / 32 == later.thread / 32 && warp_barriers != later.warp_barriers;
  }
};

/// Returns the current moment. Requires: is_in_kernel().
[[nodiscard]] const Moment& now();
/// Returns true if a thread of a launch is running.
[[nodiscard]] bool is_in_kernel();
[[nodiscard]] std::uint32_t launch_number();
/// Returns true if some of these bytes are dynamic shared memory beyond the launch's size.
[[nodiscard]] bool is_behind_shared_bytes(const void* address, std::size_t size);
/// Returns true if the address is in a thread's own stack or in `place`.
[[nodiscard]] bool is_private(const void* address);
/// Records the first fault of a launch. `code` is the address of the faulting instruction.
void report_fault(const std::string& what, const void* code);

}  // namespace spillway::processor
