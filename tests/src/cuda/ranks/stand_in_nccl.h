#pragma once

#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace spillway::testing {

/// A piece of a group of sends and receives, or of a sum.
struct NcclPiece {
  enum class Kind { kSend, kReceive, kSum };
  Kind kind = Kind::kSend;
  std::span<std::byte> bytes;  ///< of this rank's device
  int peer = 0;                ///< of a sum: this rank
};

/// Work that a stream is given by one rank, when all that it needs of others is there.
struct NcclWork {
  int rank = 0;
  cudaStream_t stream = nullptr;
  std::vector<NcclPiece> pieces;
  std::function<void()> act;  ///< moves and sums the bytes
};

/// What a test says to the library that stands for NCCL (stand_in_nccl.cpp), and learns of it. Its
/// ranks are threads of one process, and it really moves their bytes, which lie in RAM. No call
/// waits: like NCCL's own without blocking, it says that it is under way until all ranks have come.
struct StandInNccl {
  std::mutex mutex;  ///< guards all but the counts; not held while `ask` and `give` are called
  int version = NCCL_VERSION_CODE;
  std::map<int, ncclResult_t> failures;  ///< by rank: what it is told when it asks
  std::string last_error;
  /// Told of work as soon as a rank asks for it, whether or not the others have.
  std::function<void(const NcclWork&)> ask = [](const NcclWork&) {};
  /// Gives work to its stream, by default at once.
  std::function<void(const NcclWork&)> give = [](const NcclWork& work) { work.act(); };

  std::atomic<int> destroyed = 0;  ///< communicators, when all had left
  std::atomic<int> aborted = 0;

  void reset() {
    const std::lock_guard lock{mutex};
    version = NCCL_VERSION_CODE;
    failures.clear();
    last_error.clear();
    ask = [](const NcclWork&) {};
    give = [](const NcclWork& work) { work.act(); };
    destroyed = 0;
    aborted = 0;
  }
};

/// What the library exports beside NCCL's functions.
inline constexpr const char* kStandInFunction = "stand_in_nccl";
using StandInFunction = StandInNccl* (*)();

}  // namespace spillway::testing
