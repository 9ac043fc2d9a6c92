#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway {

/// Arithmetic on exchanged numbers, in the memory where they lie. Two spans have the same size;
/// they are equal or disjoint.
///
/// On the host each function returns when it is done. On a device it is enqueued after earlier work
/// of its communicator (Communicator::finish()). Results have the same bits.
class NumberKernels {
 public:
  virtual ~NumberKernels() = default;
  /// to[i] += numbers[i]
  virtual void add(std::span<float> to, std::span<const float> numbers) const = 0;
  /// to[i] = from[i]
  virtual void copy(std::span<float> to, std::span<const float> from) const = 0;
  /// numbers[i] /= by
  virtual void divide(std::span<float> numbers, float by) const = 0;
  virtual void fill(std::span<float> numbers, float value) const = 0;
};

/// The kernels for RAM.
[[nodiscard]] const NumberKernels& host_number_kernels();

/// Options of a Communicator.
struct CommunicatorOptions {
  /// How long a call waits while no data arrive and none are taken from it.
  std::chrono::milliseconds time_limit = std::chrono::minutes{5};
};

/// Pieces that one rank sends, one to each rank, and receives, one from each.
using SentPieces = std::span<const std::span<const std::byte>>;
using ReceivedPieces = std::span<const std::span<std::byte>>;

/// One rank's end of the communication in a training. All ranks call the same functions in the same
/// order. A call returns only after all ranks have made it: no rank is more than one call ahead.
/// Memory is RAM. Between devices it is memory of this rank's device, and calls only enqueue work
/// that finish() waits for.
///
/// Throws: each call throws um::Error, one sentence that names the silent ranks (number and node),
/// when the time limit passes. The training is over then: each later call throws the same. Throws
/// um::ContractError where two ranks disagree about the size of a piece.
/// Thread safety: one thread at a time, any thread; abort() from any thread at any time.
class Communicator {
 public:
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  [[nodiscard]] std::size_t rank() const { return rank_; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  /// Name of this rank's machine or container.
  [[nodiscard]] const std::string& node() const { return nodes_[rank_]; }
  /// Node names of all ranks, by rank.
  [[nodiscard]] const std::vector<std::string>& nodes() const { return nodes_; }
  /// Index of this rank among the ranks of its node, in order of ranks.
  [[nodiscard]] std::size_t rank_on_node() const { return rank_on_node_; }
  [[nodiscard]] std::size_t ranks_on_node() const { return ranks_on_node_; }

  /// Copies bytes from `root` to all ranks; the size is the same everywhere. Beyond some kilobytes,
  /// no rank sends or receives more than twice the size, however many ranks there are.
  void broadcast(std::span<std::byte> bytes, std::size_t root);

  /// Sends piece r of `sends` to rank r, and receives rank r's piece in piece r of `receives`.
  /// Pieces may be empty. A received piece overlaps no other piece.
  virtual void exchange(SentPieces sends, ReceivedPieces receives) = 0;

  /// Sums the numbers of all ranks in place (all-reduce), as fast as the library can. The library
  /// chooses the order of additions, so the bits depend on the number of ranks.
  virtual void sum(std::span<float> numbers) = 0;

  /// Arithmetic for numbers in the memory of exchange() and sum().
  [[nodiscard]] virtual const NumberKernels& kernels() const { return host_number_kernels(); }

  /// Waits for all work given to this communicator and its kernels(). A no-op on the host.
  virtual void finish() {}

  /// Name of the transport: "mpi", "nccl", "threads", or "none" for a single rank.
  [[nodiscard]] virtual std::string library() const = 0;

  /// Ends all ranks because of `sentence`. Ranks that are processes exit with a non-zero status.
  /// One sentence that names this rank is printed, or thrown by the other ranks' calls.
  /// Throws: um::Error with that sentence where ranks are threads; otherwise does not return.
  [[noreturn]] virtual void abort(std::string_view sentence) = 0;

 protected:
  /// Requires: `rank` < nodes.size().
  Communicator(std::vector<std::string> nodes, std::size_t rank);

 private:
  std::vector<std::string> nodes_;
  std::size_t rank_;
  std::size_t rank_on_node_ = 0;
  std::size_t ranks_on_node_ = 0;
};

/// Returns the communicator of a process alone (MPI_COMM_SELF): its size is 1, and it answers every
/// call locally. Thread safety: any number of threads at once.
[[nodiscard]] Communicator& self_communicator() noexcept;

/// Sends piece r of `pieces` from rank r to all ranks, in place. Sizes are the same everywhere.
void all_gather(Communicator& communicator, ReceivedPieces pieces);

/// Calls Communicator::abort() for a failure that all ranks may have in common. Rank 0 reports it
/// before the others do.
void end_all(Communicator& communicator, std::string_view sentence);

/// Returns when all ranks have called it (barrier).
void wait_for_all(Communicator& communicator);

/// Numbers [first, first + count) of a buffer.
struct NumberSlice {
  std::size_t first = 0;
  std::size_t count = 0;

  friend bool operator==(const NumberSlice&, const NumberSlice&) = default;
};

/// Returns the slice of `n` numbers that a rank owns: about n / ranks, in order of ranks. Each
/// slice begins at a multiple of 16; for small n some are empty. Requires: rank < ranks.
[[nodiscard]] NumberSlice slice_of_rank(std::size_t rank, std::size_t ranks, std::size_t n);

/// Returns an upper bound of all ranks' slices of n numbers, a multiple of 16.
[[nodiscard]] std::size_t largest_slice(std::size_t ranks, std::size_t n);

}  // namespace spillway
