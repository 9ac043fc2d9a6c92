#pragma once

#include <cstddef>

namespace spillway::processor {

/// What is wrong in a small kernel.
enum class Mistake {
  kNone,             ///< numbers of a block are added to their neighbours' in shared memory, twice
  kNoBarrier,        ///< threads read before their neighbour has written
  kNoSecondBarrier,  ///< they write for the second time before all have read
  kBarrierInBranch,  ///< half of them do not reach a barrier
  kTwoBarriers,      ///< the halves of a block wait at different lines
  kUnwritten,        ///< one reads shared memory that nobody wrote
  kBehindShared,     ///< more shared memory is written than the launch has
  kNoneInWarps,      ///< lanes add the number of the one beside them
  kNoWarpBarrier,    ///< a lane writes what another one reads
  kHalfWarp,         ///< some lanes are not at the shuffle
  kNoneInMemory,     ///< each thread adds 1 to a number
  kOneTooMuch,       ///< and one to the place behind the last
  kOneTooFew,        ///< or before the first
  kSameNumber,       ///< two blocks add to the same number
  kTooMuchShared     ///< the launch asks for more shared memory than a block may have
};

/// Runs it on `count` numbers of device memory, a multiple of 64. Throws: KernelFault.
void run_kernel_with(Mistake mistake, float* numbers, std::size_t count);

}  // namespace spillway::processor
