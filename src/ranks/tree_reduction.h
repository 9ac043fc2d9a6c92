#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/ranks/communicator.h"
#include "src/ranks/shard_tree.h"
#include "um/bytes.h"

namespace spillway {

/// This rank's partial sums, n numbers each: of the nodes of the tree that cover its shards, in
/// order.
using NodeSums = std::span<const std::span<const float>>;

/// Sums over all shards of a global batch, in the order of ShardTree: the same bits for any number
/// of ranks, of which each computes shards_of_rank(). All ranks call the same functions in the same
/// order with the same n.
///
/// Each rank owns a slice of the n numbers: it receives this slice of everybody's partial sums,
/// adds them up (reduce_scatter), and sends the result to all (all_gather). A rank sends n numbers
/// for each node of its cover, and n more: 2 n where each rank's shards are one node.
///
/// Of a communicator between devices all memory is the device's, and Communicator::finish() waits.
///
/// Throws: what Communicator throws. Thread safety: one thread at a time.
class TreeReduction {
 public:
  /// Keeps a reference to `communicator`. Requires: `shards` is not zero.
  TreeReduction(Communicator& communicator, std::size_t shards);

  [[nodiscard]] const ShardTree& tree() const { return tree_; }
  /// The shards of this rank, and the nodes that its partial sums are of.
  [[nodiscard]] const ShardRange& own_shards() const { return own_shards_; }
  [[nodiscard]] const std::vector<ShardRange>& own_nodes() const { return covers_[rank()]; }

  /// slice_of_rank() of these ranks.
  [[nodiscard]] NumberSlice slice(std::size_t rank, std::size_t n) const;
  [[nodiscard]] NumberSlice own_slice(std::size_t n) const { return slice(rank(), n); }

  /// Memory that a reduction of `n` numbers needs beside its arguments: a piece of the slice, at
  /// most 1 MiB, for each node that another rank sends. It never shrinks as n grows, so that one
  /// scratch for the largest is enough for all.
  [[nodiscard]] um::Bytes scratch_size(std::size_t n) const;

  /// The sum of this rank's slice, own_slice(n), into `sum`, which may be that slice of the first
  /// node's memory, and shares no memory with any other node. Requires: `nodes` are as own_nodes();
  /// `scratch` has scratch_size(n) bytes and the alignment of a float.
  void reduce_scatter(NodeSums nodes, std::size_t n, std::span<float> sum,
                      std::span<std::byte> scratch) const;

  /// Each rank's slice of `numbers` to all ranks, in place.
  void all_gather(std::span<float> numbers) const;

  /// The sum of all n numbers into `sum`, which may be the first node's memory, and shares no
  /// memory with any other node. Requires: as reduce_scatter().
  void all_reduce(NodeSums nodes, std::span<float> sum, std::span<std::byte> scratch) const;

  /// The same by Communicator::sum(): faster, but the bits depend on the number of ranks. `sum` may
  /// be the first node's memory, and shares no memory with any other node.
  void fast_all_reduce(NodeSums nodes, std::span<float> sum) const;

 private:
  // Numbers [offset, offset + count) of each rank's slice of n, as far as it has so many.
  struct Piece {
    std::size_t n = 0;
    std::size_t offset = 0;
    std::size_t count = 0;
  };

  [[nodiscard]] std::size_t rank() const { return communicator_.rank(); }
  // This rank's piece of the nodes of all others to `scratch`, in order of nodes.
  void receive_piece(NodeSums nodes, const Piece& piece, float* scratch) const;
  // Adds up these and its own.
  void add_piece(NodeSums nodes, const Piece& piece, float* scratch, float* sum) const;

  Communicator& communicator_;
  ShardTree tree_;
  ShardRange own_shards_;
  std::vector<std::vector<ShardRange>> covers_;  // by rank
  std::size_t received_nodes_ = 0;               // of all others
  std::size_t rounds_ = 0;                       // exchanges of a piece: the most nodes of a rank
};

}  // namespace spillway
