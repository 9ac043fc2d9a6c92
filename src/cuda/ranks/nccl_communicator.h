#pragma once

#include <string>

#include "src/cuda/ranks/device_communicator.h"
#include "src/cuda/ranks/nccl_comm.h"
#include "src/cuda/ranks/nccl_functions.h"

namespace spillway::cuda {

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
