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

/// A send, a receive or a sum, as a piece of a group.
struct NcclPiece {
  enum class Kind { kSend, kReceive, kSum };
  Kind kind = Kind::kSend;
  std::span<std::byte> bytes;  ///< in this rank's device memory
  int peer = 0;                ///< for a sum: this rank
};

/// One rank's work, given to its stream once all data from other ranks is available.
struct NcclWork {
  int rank = 0;
  cudaStream_t stream = nullptr;
  std::vector<NcclPiece> pieces;
  std::function<void()> act;  ///< moves and sums the bytes
};

/// Settings and records of the stand-in for NCCL (stand_in_nccl.cpp). Ranks are threads of one
/// process, and their bytes in RAM are really moved. No call waits: like non-blocking NCCL, calls
/// report "in progress" until all ranks have arrived.
struct StandInNccl {
  std::mutex mutex;  ///< guards all members except the counts; not held during `ask` and `give`
  int version = NCCL_VERSION_CODE;
  std::map<int, ncclResult_t> failures;  ///< by rank: result of its next query
  std::string last_error;
  /// Called when a rank requests work, even before the others do.
  std::function<void(const NcclWork&)> ask = [](const NcclWork&) {};
  /// Gives work to its stream; by default runs it at once.
  std::function<void(const NcclWork&)> give = [](const NcclWork& work) { work.act(); };

  std::atomic<int> destroyed = 0;  ///< number of communicators destroyed after all had left
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

/// Name of the function that the library exports besides NCCL's.
inline constexpr const char* kStandInFunction = "stand_in_nccl";
using StandInFunction = StandInNccl* (*)();

}  // namespace spillway::testing
