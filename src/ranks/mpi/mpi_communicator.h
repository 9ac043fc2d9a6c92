#pragma once

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "src/ranks/communicator.h"
#include "um/error.h"

namespace spillway {

/// Throws: um::Error with MPI's message unless `code` is MPI_SUCCESS. `what`: "MPI cannot send".
void check_mpi(int code, std::string_view what);

/// Messages between the ranks of MPI's world. All calls are non-blocking, so that the silent ranks
/// are known when the time limit passes. The thread sleeps between polls: ranks of one machine
/// share its processors.
///
/// Throws: um::Error, see Communicator. Thread safety: one thread at a time; other code that calls
/// MPI holds lock().
class MpiMessages {
 public:
  /// Requires: MPI is initialised. Collective: all ranks construct theirs together.
  explicit MpiMessages(std::chrono::milliseconds time_limit);
  MpiMessages(const MpiMessages&) = delete;
  MpiMessages& operator=(const MpiMessages&) = delete;
  ~MpiMessages() = default;  // MPI_Finalize frees MPI's objects

  [[nodiscard]] std::size_t rank() const { return rank_; }
  [[nodiscard]] std::size_t ranks() const { return nodes_.size(); }
  [[nodiscard]] const std::vector<std::string>& nodes() const { return nodes_; }
  /// Why calls cannot work any more; empty: they can.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock{mutex_}; }

  /// See Communicator.
  void exchange(SentPieces sends, ReceivedPieces receives);
  void sum(std::span<float> numbers);

 private:
  // A piece to receive.
  struct Awaited {
    std::size_t from;
    std::span<std::byte> rest;  // not covered by messages that are in flight or here
    bool is_complete = false;   // all messages have been matched
  };

  // Messages in flight, each with its source or destination rank.
  struct Pending {
    std::vector<MPI_Request> requests;
    std::vector<std::size_t> ranks;
    std::vector<Awaited> awaited;

    // Result of the last poll.
    std::vector<int> moved;
    bool has_requests = true;  // some are in flight
  };

  void learn_nodes();
  void refuse_after_failure() const;
  [[noreturn]] void fail(const std::string& sentence);
  // Tag of this call's messages; the last message of a piece has its own.
  [[nodiscard]] int tag(bool is_last) const { return 2 * call_ + (is_last ? 1 : 0); }
  static MPI_Request& add_request(std::size_t rank, Pending& pending);
  void send(std::span<const std::byte> bytes, std::size_t to, Pending& pending);
  [[nodiscard]] bool receive_next(Awaited& piece, Pending& pending);
  // Returns the ranks that were silent for the time limit, in order; empty when all is done.
  std::vector<std::size_t> wait(Pending& pending, std::chrono::milliseconds time_limit);
  [[nodiscard]] bool look(Pending& pending);
  [[nodiscard]] static std::vector<std::size_t> silent_in(const Pending& pending);
  std::vector<std::size_t> move_all(SentPieces sends, ReceivedPieces receives,
                                    std::chrono::milliseconds time_limit);
  [[noreturn]] void fail_in_sum();

  std::chrono::milliseconds time_limit_;
  std::mutex mutex_;  // held during each call of MPI
  MPI_Comm messages_ = MPI_COMM_NULL;
  MPI_Comm sums_ = MPI_COMM_NULL;
  std::size_t rank_ = 0;
  std::vector<std::string> nodes_;  // by rank
  int call_ = 0;
  std::string failure_;
};

/// A rank of MPI's world. Its destructor finalises MPI together with all ranks. During an exception
/// or after a failure it does not: the launcher then ends the others.
class MpiCommunicator final : public Communicator {
 public:
  /// Requires: MPI is initialised. With `leaves_mpi`, the destructor finalises MPI.
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
  int exceptions_;  // in flight at construction
};

}  // namespace spillway
