#pragma once

#include <nccl.h>

#include <chrono>
#include <functional>
#include <string>

#include "src/cuda/ranks/device_communicator.h"

namespace spillway::cuda {

/// The functions of NCCL that exchanges call, from a library that is loaded when ranks on several
/// GPUs want it: the program starts where there is none.
struct NcclFunctions {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclCommFinalize) comm_finalize = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  std::string version;  ///< "2.28.9"
};

/// Loads it, for the rest of the process. Throws: um::Error, one sentence that says what to do,
/// where it is not there, cannot be loaded, or is older than 2.20.
[[nodiscard]] NcclFunctions load_nccl(const std::string& library);

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

/// Ranks, each with a GPU of its own, whose memories NCCL moves pieces between. Pieces are sent and
/// received in one group, and nothing is sent where nothing is to be: a call ends without the
/// other ranks, and finish() does not.
///
/// A rank that is silent ends the others after the time limit: NCCL does not say which one it is,
/// so the processes call a roll, which may take them the time limit again.
class NcclCommunicator final : public DeviceCommunicator {
 public:
  /// All ranks of `ranks` make one, the same time. Throws: um::Error, as calls do.
  NcclCommunicator(Communicator& ranks, Device device, const CommunicatorOptions& options,
                   NcclFunctions nccl);

  void exchange(SentPieces sends, ReceivedPieces receives) override;
  void sum(std::span<float> numbers) override;
  void finish() override;
  [[nodiscard]] std::string library() const override { return "nccl"; }

 private:
  template <class Work>
  void unless_over(const Work& work);
  void settle();
  [[noreturn]] void give_up();

  NcclFunctions nccl_;
  NcclComm comm_;
  std::string over_;  // why no call is of use any more; empty: they are
};

}  // namespace spillway::cuda
