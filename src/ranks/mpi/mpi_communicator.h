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

/// Throws um::Error with MPI's own words unless `code` is MPI_SUCCESS. `what`: "MPI cannot send".
void check_mpi(int code, std::string_view what);

/// Messages between the ranks of MPI's world. All are sent and received without blocking, so that
/// it is known which rank is silent when the time limit passes. Between two looks at what has come
/// the thread sleeps: ranks of one machine share its processors.
///
/// Throws: um::Error, see Communicator. Thread safety: one thread at a time; lock() is for whoever
/// calls MPI beside it.
class MpiMessages {
 public:
  /// Requires: MPI has been entered. All ranks make theirs together.
  explicit MpiMessages(std::chrono::milliseconds time_limit);
  MpiMessages(const MpiMessages&) = delete;
  MpiMessages& operator=(const MpiMessages&) = delete;
  ~MpiMessages() = default;  // MPI's end frees what is MPI's

  [[nodiscard]] std::size_t rank() const { return rank_; }
  [[nodiscard]] std::size_t ranks() const { return nodes_.size(); }
  [[nodiscard]] const std::vector<std::string>& nodes() const { return nodes_; }
  /// Why no call is of use any more; empty: they are.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock{mutex_}; }

  /// See Communicator.
  void exchange(SentPieces sends, ReceivedPieces receives);
  void sum(std::span<float> numbers);

 private:
  // A piece that is to come.
  struct Awaited {
    std::size_t from;
    std::span<std::byte> rest;  // beyond the messages that are on their way or here
    bool is_complete = false;   // all of them are
  };

  // Messages on their way, each with the rank that it is from or for.
  struct Pending {
    std::vector<MPI_Request> requests;
    std::vector<std::size_t> ranks;
    std::vector<Awaited> awaited;

    // What the last look at them found.
    std::vector<int> moved;
    bool has_requests = true;  // some are under way
  };

  void learn_nodes();
  void refuse_after_failure() const;
  [[noreturn]] void fail(const std::string& sentence);
  // Of a message of this call, which is the last of its piece or not.
  [[nodiscard]] int tag(bool is_last) const { return 2 * call_ + (is_last ? 1 : 0); }
  static MPI_Request& add_request(std::size_t rank, Pending& pending);
  void send(std::span<const std::byte> bytes, std::size_t to, Pending& pending);
  [[nodiscard]] bool receive_next(Awaited& piece, Pending& pending);
  // The ranks from which nothing has come for the time limit, in order; none: all has moved.
  std::vector<std::size_t> wait(Pending& pending, std::chrono::milliseconds time_limit);
  [[nodiscard]] bool look(Pending& pending);
  [[nodiscard]] static std::vector<std::size_t> silent_in(const Pending& pending);
  std::vector<std::size_t> move_all(SentPieces sends, ReceivedPieces receives,
                                    std::chrono::milliseconds time_limit);
  [[noreturn]] void fail_in_sum();

  std::chrono::milliseconds time_limit_;
  std::mutex mutex_;  // held in each call of MPI
  MPI_Comm messages_ = MPI_COMM_NULL;
  MPI_Comm sums_ = MPI_COMM_NULL;
  std::size_t rank_ = 0;
  std::vector<std::string> nodes_;  // by rank
  int call_ = 0;
  std::string failure_;
};

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
