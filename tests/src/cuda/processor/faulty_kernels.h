#pragma once

#include <cstddef>

namespace spillway::processor {

/// The mistake in a small kernel.
enum class Mistake {
  kNone,             ///< a block's threads add their neighbours' numbers in shared memory, twice
  kNoBarrier,        ///< threads read before their neighbours have written
  kNoSecondBarrier,  ///< threads write a second time before all have read
  kBarrierInBranch,  ///< half of the threads do not reach a barrier
  kTwoBarriers,      ///< the halves of a block wait at different lines
  kUnwritten,        ///< a thread reads shared memory that was never written
  kBehindShared,     ///< a thread writes past the launch's shared memory
  kNoneInWarps,      ///< lanes add their neighbours' numbers
  kNoWarpBarrier,    ///< a lane writes what another one reads, without a barrier
  kHalfWarp,         ///< some lanes do not reach the shuffle
  kNoneInMemory,     ///< each thread adds 1 to a number
  kOneTooMuch,       ///< a thread also writes after the last number
  kOneTooFew,        ///< a thread also writes before the first number
  kBetween,          ///< threads add to what lies between two numbers
  kSameNumber,       ///< two blocks add to the same number
  kTooMuchShared     ///< the launch asks for more shared memory than a block may have
};

/// Runs the kernel on `count` numbers of device memory, a multiple of 64. Throws: KernelFault.
void run_kernel_with(Mistake mistake, float* numbers, std::size_t count);

}  // namespace spillway::processor
