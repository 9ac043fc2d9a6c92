#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway {

/// What is computed with numbers that ranks exchange, where these lie. Two spans are of one size,
/// and the same memory or none in common.
///
/// The host's return when it is done. Those of a device enqueue it, behind what its communicator
/// was given before (Communicator::finish()); the bits are the host's.
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

/// Those of RAM.
[[nodiscard]] const NumberKernels& host_number_kernels();

/// How an end of a Communicator is opened.
struct CommunicatorOptions {
  /// How long a call waits while nothing at all comes in and nothing is taken from it.
  std::chrono::milliseconds time_limit = std::chrono::minutes{5};
};

/// What one rank sends, a piece to each rank, and what it receives, a piece from each.
using SentPieces = std::span<const std::span<const std::byte>>;
using ReceivedPieces = std::span<const std::span<std::byte>>;

/// One rank's end of what the ranks of a training say to each other. All ranks call the same
/// functions in the same order, and each call ends only when all have made it: a rank is never
/// more than one call ahead. Memory is RAM; of a communicator between devices it is that of this
/// rank's device, and calls only enqueue what finish() waits for.
///
/// Throws: every call throws um::Error, one sentence that names the ranks (number and node) from
/// which nothing came, when the time limit passes. The training is over then: each later call
/// throws the same. um::ContractError where two ranks disagree about the size of a piece.
/// Thread safety: one thread at a time, whichever; abort() from any at any time.
class Communicator {
 public:
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  [[nodiscard]] std::size_t rank() const { return rank_; }
  [[nodiscard]] std::size_t ranks() const { return nodes_.size(); }
  /// The name of the machine, or container, that this rank is on.
  [[nodiscard]] const std::string& node() const { return nodes_[rank_]; }
  /// Those of all ranks, by rank.
  [[nodiscard]] const std::vector<std::string>& nodes() const { return nodes_; }
  /// The place of this rank among those of its node, which are in order.
  [[nodiscard]] std::size_t rank_on_node() const { return rank_on_node_; }
  [[nodiscard]] std::size_t ranks_on_node() const { return ranks_on_node_; }

  /// From `root` to all; the same size everywhere. Of more than some kilobytes, no rank sends or
  /// receives more than twice, however many ranks there are.
  void broadcast(std::span<std::byte> bytes, std::size_t root);

  /// Piece r of `sends` goes to rank r; what rank r sent to this one comes to piece r of
  /// `receives`. Pieces may be empty. A piece received shares no memory with any other piece.
  virtual void exchange(SentPieces sends, ReceivedPieces receives) = 0;

  /// The library's fastest sum of all ranks' numbers, in place and the same on all ranks. The order
  /// of additions is the library's, so the bits depend on the number of ranks.
  virtual void sum(std::span<float> numbers) = 0;

  /// What computes with numbers that exchange() and sum() take.
  [[nodiscard]] virtual const NumberKernels& kernels() const { return host_number_kernels(); }

  /// Returns when all is done that this and its kernels() were given: on the host each call does.
  virtual void finish() {}

  /// What carries it: "mpi", "nccl", "threads", or "none" where there is one rank.
  [[nodiscard]] virtual std::string library() const = 0;

  /// Ends all ranks, because of what `sentence` says: each rank's wait, and where ranks are
  /// processes, each process, with a status that is not zero. One sentence that names this rank is
  /// printed, or is what the other ranks' calls throw. Throws: um::Error with it, where ranks are
  /// threads; else it does not return.
  [[noreturn]] virtual void abort(std::string_view sentence) = 0;

 protected:
  /// Requires: `rank` is less than the number of nodes.
  Communicator(std::vector<std::string> nodes, std::size_t rank);

 private:
  std::vector<std::string> nodes_;
  std::size_t rank_;
  std::size_t rank_on_node_ = 0;
  std::size_t ranks_on_node_ = 0;
};

/// Piece r of `pieces`, which is rank r's, to all ranks, in place. Sizes are the same everywhere.
void all_gather(Communicator& communicator, ReceivedPieces pieces);

/// Communicator::abort() of what may have gone wrong on all ranks alike: the first one says so
/// before the others have anything to say.
void end_all(Communicator& communicator, std::string_view sentence);

/// Returns when all ranks have come here.
void wait_for_all(Communicator& communicator);

/// Numbers [first, first + count) of a buffer.
struct NumberSlice {
  std::size_t first = 0;
  std::size_t count = 0;

  friend bool operator==(const NumberSlice&, const NumberSlice&) = default;
};

/// What of `n` numbers a rank owns: about n / R, in order of ranks. Each slice begins at a multiple
/// of 16 numbers; where n is small, some may be empty. Requires: `rank` is less than `ranks`.
[[nodiscard]] NumberSlice slice_of_rank(std::size_t rank, std::size_t ranks, std::size_t n);

/// At least as many numbers as any rank's slice of n has, a multiple of 16.
[[nodiscard]] std::size_t largest_slice(std::size_t ranks, std::size_t n);

}  // namespace spillway
