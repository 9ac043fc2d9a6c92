#pragma once

#include <nccl.h>

#include <chrono>
#include <functional>
#include <string>

#include "src/cuda/ranks/device_communicator.h"

namespace spillway::cuda {

/// The NCCL functions that exchanges call. The library is loaded when ranks on several GPUs need
/// it, so that the program also starts without it.
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

/// Loads NCCL for the rest of the process. Throws: um::Error, one sentence that says what to do, if
/// it is missing, cannot be loaded, or is older than 2.20.
[[nodiscard]] NcclFunctions load_nccl(const std::string& library);

/// One rank's NCCL communicator in non-blocking mode: the caller polls while NCCL works. The
/// destructor leaves together with the other ranks, or alone after abort() or during an exception.
///
/// Throws: um::Error with NCCL's message. Thread safety: any thread, but one at a time.
class NcclComm {
 public:
  struct Place {
    ncclUniqueId id;  ///< the same on all ranks
    int ranks = 1;
    int rank = 0;
  };

  /// Begins to join the other ranks; settle() tells when that is done. `nccl` outlives this object.
  NcclComm(const NcclFunctions& nccl, const Place& place);
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;
  ~NcclComm();

  /// Submits several NCCL calls as one group. `calls` makes them with get(), and passes their
  /// results to check().
  void group(const std::function<void()>& calls);
  /// Waits until NCCL has enqueued its work; returns false after `time_limit`.
  [[nodiscard]] bool settle(std::chrono::milliseconds time_limit) const;
  /// Throws if an error has occurred in the meantime.
  void look() const { static_cast<void>(is_settled()); }
  /// Stops all work in progress. Only the destructor may be called afterwards.
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

/// Ranks with a GPU each; NCCL moves pieces between their memories. A call sends and receives in
/// one group and skips empty pieces. A call therefore may end without the other ranks, but finish()
/// may not.
///
/// A silent rank ends the others after the time limit. NCCL does not tell which rank
/// it is, so the processes then check in with each other. This may take the time limit again.
class NcclCommunicator final : public DeviceCommunicator {
 public:
  /// Collective over `ranks`. Throws: um::Error, as do calls.
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
  std::string over_;  // why all further calls fail; empty if they do not
};

}  // namespace spillway::cuda
