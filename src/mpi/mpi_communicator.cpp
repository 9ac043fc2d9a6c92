#include "src/mpi/mpi_communicator.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

#include "src/ranks/rank_names.h"
#include "um/error.h"

namespace spillway {

MpiCommunicator::MpiCommunicator(std::unique_ptr<MpiMessages> messages, bool leaves_mpi)
    : Communicator{messages->nodes(), messages->rank()},
      messages_{std::move(messages)},
      leaves_mpi_{leaves_mpi},
      exceptions_{std::uncaught_exceptions()} {}

// MPI_Finalize waits for all ranks without a time limit.
MpiCommunicator::~MpiCommunicator() {
  if (!leaves_mpi_ || std::uncaught_exceptions() > exceptions_) return;
  if (!messages_->failure().empty()) return;
  try {
    wait_for_all(*this);
    MPI_Finalize();
  } catch (const std::exception& error) {
    fmt::print(stderr, "spillway: {}\n", error.what());
  }
}

void MpiCommunicator::exchange(SentPieces sends, ReceivedPieces receives) {
  messages_->exchange(sends, receives);
}

void MpiCommunicator::sum(std::span<float> numbers) { messages_->sum(numbers); }

void MpiCommunicator::abort(std::string_view sentence) {
  const std::array<std::size_t, 1> own{rank()};
  fmt::print(stderr, "spillway: {} ended: {}\n", rank_names(own, nodes()), um::shortened(sentence));
  const auto guard = messages_->lock();
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace spillway
