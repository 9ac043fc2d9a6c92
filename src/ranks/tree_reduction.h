#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/ranks/communicator.h"
#include "src/ranks/sum_tree.h"
#include "um/bytes.h"

namespace spillway {

/// This rank's partial sums, n numbers each, for the nodes of the tree that cover its
/// micro-batches, in order.
using NodeSums = std::span<const std::span<const float>>;

/// Sums over all micro-batches of a global batch, in the order of SumTree: the bits are the same
/// for any number of ranks. Each rank computes micro_batches_of_rank(). All ranks call the same
/// functions in the same order with the same n.
///
/// Each rank owns a slice of the n numbers. It receives this slice of all partial sums, adds them
/// (reduce-scatter), and sends the result to all ranks (all-gather). A rank sends n numbers per
/// node of its cover, and n more: 2 n if its micro-batches are one node.
///
/// Between devices all memory is the device's, and Communicator::finish() waits.
///
/// Throws: what Communicator throws. Thread safety: one thread at a time.
class TreeReduction {
 public:
  /// Keeps a reference to `communicator`. Requires: `micro_batches` is not zero.
  TreeReduction(Communicator& communicator, std::size_t micro_batches);

  [[nodiscard]] const SumTree& tree() const { return tree_; }
  /// This rank's micro-batches, and the nodes that its partial sums belong to.
  [[nodiscard]] const MicroBatchRange& own_micro_batches() const { return own_micro_batches_; }
  [[nodiscard]] const std::vector<MicroBatchRange>& own_nodes() const { return covers_[rank()]; }

  /// Returns slice_of_rank() for these ranks.
  [[nodiscard]] NumberSlice slice(std::size_t rank, std::size_t n) const;
  [[nodiscard]] NumberSlice own_slice(std::size_t n) const { return slice(rank(), n); }

  /// Scratch memory for a reduction of `n` numbers: one piece of the slice, at most 1 MiB, for each
  /// node that another rank sends. Never shrinks as n grows, so one scratch for the largest n is
  /// enough for all.
  [[nodiscard]] um::Bytes scratch_size(std::size_t n) const;

  /// Sums this rank's slice, own_slice(n), into `sum`. `sum` may be that slice of the first node's
  /// memory, and overlaps no other node. Requires: `nodes` match own_nodes(); `scratch` has
  /// scratch_size(n) bytes and the alignment of a float.
  void reduce_scatter(NodeSums nodes, std::size_t n, std::span<float> sum,
                      std::span<std::byte> scratch) const;

  /// Copies each rank's slice of `numbers` to all ranks, in place.
  void all_gather(std::span<float> numbers) const;

  /// Sums all n numbers into `sum`, which may be the first node's memory and overlaps no other
  /// node. Requires: as reduce_scatter().
  void all_reduce(NodeSums nodes, std::span<float> sum, std::span<std::byte> scratch) const;

  /// Does the same by Communicator::sum(): faster, but the bits depend on the number of ranks.
  /// `sum` may be the first node's memory and overlaps no other node.
  void fast_all_reduce(NodeSums nodes, std::span<float> sum) const;

 private:
  // Numbers [offset, offset + count) of each rank's slice of n; less at a slice's end.
  struct Piece {
    std::size_t n = 0;
    std::size_t offset = 0;
    std::size_t count = 0;
  };

  [[nodiscard]] std::size_t rank() const { return communicator_.rank(); }
  // Receives this rank's piece of all other ranks' nodes in `scratch`, in order of nodes.
  void receive_piece(NodeSums nodes, const Piece& piece, float* scratch) const;
  // Sums the received nodes and this rank's own.
  void add_piece(NodeSums nodes, const Piece& piece, float* scratch, float* sum) const;

  Communicator& communicator_;
  SumTree tree_;
  MicroBatchRange own_micro_batches_;
  std::vector<std::vector<MicroBatchRange>> covers_;  // by rank
  std::size_t received_nodes_ = 0;                    // of all other ranks
  std::size_t rounds_ = 0;  // exchanges per piece: the largest number of nodes of a rank
};

}  // namespace spillway
