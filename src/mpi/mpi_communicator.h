#pragma once

#include <memory>

#include "src/mpi/mpi_messages.h"
#include "src/ranks/communicator.h"

namespace spillway {

/// A rank of MPI's world. It leaves MPI at its end: together with all others, so that an end beside
/// an exception, or after a failure, leaves without them, and the launcher ends the others.
class MpiCommunicator final : public Communicator {
 public:
  /// Requires: MPI has been entered. Where it `leaves_mpi`, this object leaves it.
  MpiCommunicator(std::unique_ptr<MpiMessages> messages, bool leaves_mpi);
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;
  ~MpiCommunicator() override;

  void exchange(SentPieces sends, ReceivedPieces receives) override;
  void sum(std::span<float> numbers) override;
  [[nodiscard]] std::string library() const override { return ranks() > 1 ? "mpi" : "none"; }
  [[noreturn]] void abort(std::string_view sentence) override;

 private:
  std::unique_ptr<MpiMessages> messages_;
  bool leaves_mpi_;
  int exceptions_;  // under way when this was made
};

}  // namespace spillway
