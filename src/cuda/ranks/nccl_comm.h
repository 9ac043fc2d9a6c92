#pragma once

#include <chrono>
#include <functional>

#include "src/cuda/ranks/nccl_functions.h"

namespace spillway::cuda {

/// NCCL's communicator of one rank, none of whose calls blocks: where NCCL needs longer, the caller
/// asks it again and again. Its end leaves together with the other ranks, or alone where an
/// exception is under way or abort() was called.
///
/// Throws: um::Error with NCCL's words. Thread safety: one thread at a time.
class NcclComm {
 public:
  struct Place {
    ncclUniqueId id;  ///< the same on all ranks
    int ranks = 1;
    int rank = 0;
  };

  /// Begins to meet the other ranks: settle() tells when that is done. `nccl` outlives it.
  NcclComm(const NcclFunctions& nccl, const Place& place);
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;
  ~NcclComm();

  /// Gives NCCL several calls as one; `calls` makes them with get(), and check() of what they
  /// return.
  void group(const std::function<void()>& calls);
  /// Waits until NCCL has enqueued what it was given. False: it had not when `time_limit` passed.
  [[nodiscard]] bool settle(std::chrono::milliseconds time_limit) const;
  /// Throws where something has failed meanwhile.
  void look() const { static_cast<void>(is_settled()); }
  /// Stops what is under way. Nothing but the end is allowed after it.
  void abort() noexcept;

  [[nodiscard]] ncclComm_t get() const { return comm_; }
  void check(ncclResult_t result) const;

 private:
  [[nodiscard]] bool is_settled() const;
  void leave() noexcept;

  const NcclFunctions& nccl_;
  ncclComm_t comm_ = nullptr;
  int exceptions_;
};

}  // namespace spillway::cuda
