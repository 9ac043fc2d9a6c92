#include "src/ranks/tree_reduction.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "um/error.h"

namespace spillway {
namespace {

constexpr std::size_t kLargestPiece = 256UL * 1024;  // numbers of a slice that are summed at a time

std::size_t largest_piece(std::size_t n, std::size_t ranks) {
  return std::min(largest_slice(ranks, n), kLargestPiece);
}

// Returns the part of `slice` in the piece that begins at `offset` within the slice.
NumberSlice piece_of(const NumberSlice& slice, std::size_t offset, std::size_t piece) {
  const std::size_t from = std::min(offset, slice.count);
  return {slice.first + from, std::min(piece, slice.count - from)};
}

// A partial sum on the stack. Received sums may be added to in place; this rank's own may not.
struct PartialSum {
  const float* numbers = nullptr;
  float* writable = nullptr;  // the same memory, or null
};

// Sums the two halves of a node, in place of one that came from another rank.
PartialSum sum_of(const PartialSum& left, const PartialSum& right, std::size_t count,
                  const NumberKernels& kernels) {
  const bool into_left = left.writable != nullptr;
  const PartialSum& sum = into_left ? left : right;
  kernels.add({sum.writable, count},
              {into_left ? right.numbers : left.numbers, count});  // addition is commutative
  return sum;
}

}  // namespace

TreeReduction::TreeReduction(Communicator& communicator, std::size_t micro_batches)
    : communicator_{communicator},
      tree_{micro_batches},
      own_micro_batches_{
          micro_batches_of_rank(micro_batches, communicator.size(), communicator.rank())} {
  for (std::size_t r = 0; r < communicator.size(); ++r) {
    covers_.push_back(tree_.cover(micro_batches_of_rank(micro_batches, communicator.size(), r)));
    if (r != rank()) received_nodes_ += covers_[r].size();
    rounds_ = std::max(rounds_, covers_[r].size());
  }
}

NumberSlice TreeReduction::slice(std::size_t rank, std::size_t n) const {
  return slice_of_rank(rank, communicator_.size(), n);
}

um::Bytes TreeReduction::scratch_size(std::size_t n) const {
  return um::Bytes{received_nodes_ * largest_piece(n, communicator_.size()) * sizeof(float)};
}

void TreeReduction::receive_piece(NodeSums nodes, const Piece& piece, float* scratch) const {
  const std::size_t ranks = communicator_.size();
  for (std::size_t round = 0; round < rounds_; ++round) {
    std::vector<std::span<const std::byte>> sends(ranks);
    std::vector<std::span<std::byte>> receives(ranks);
    std::size_t place = round;  // among the nodes of other ranks
    for (std::size_t r = 0; r < ranks; ++r) {
      if (r == rank()) continue;
      const NumberSlice sent = piece_of(slice(r, piece.n), piece.offset, piece.count);
      if (round < nodes.size()) {
        sends[r] = std::as_bytes(nodes[round].subspan(sent.first, sent.count));
      }
      const NumberSlice own = piece_of(own_slice(piece.n), piece.offset, piece.count);
      if (round < covers_[r].size()) {
        receives[r] = std::as_writable_bytes(std::span{scratch + place * piece.count, own.count});
      }
      place += covers_[r].size();
    }
    communicator_.exchange(sends, receives);
  }
}

void TreeReduction::add_piece(NodeSums nodes, const Piece& piece, float* scratch,
                              float* sum) const {
  const NumberSlice own = piece_of(own_slice(piece.n), piece.offset, piece.count);
  std::vector<PartialSum> stack;
  for (std::size_t r = 0; r < covers_.size(); ++r) {
    for (std::size_t i = 0; i < covers_[r].size(); ++i) {
      if (r == rank()) {
        stack.push_back({.numbers = nodes[i].data() + own.first});
      } else {
        stack.push_back({.numbers = scratch, .writable = scratch});
        scratch += piece.count;
      }
      for (std::size_t m = tree_.merges_after(tree_.root(), covers_[r][i]); m > 0; --m) {
        const PartialSum right = stack.back();
        stack.pop_back();
        stack.back() = sum_of(stack.back(), right, own.count, communicator_.kernels());
      }
    }
  }
  communicator_.kernels().copy({sum, own.count}, {stack.back().numbers, own.count});
}

void TreeReduction::reduce_scatter(NodeSums nodes, std::size_t n, std::span<float> sum,
                                   std::span<std::byte> scratch) const {
  um::expects(nodes.size() == own_nodes().size(), "a partial sum of each of this rank's nodes");
  for (const std::span<const float> node : nodes) um::expects(node.size() == n, "n numbers each");
  um::expects(sum.size() == own_slice(n).count, "a sum of this rank's slice");
  um::expects(scratch.size() >= scratch_size(n).count() &&
                  std::bit_cast<std::uintptr_t>(scratch.data()) % alignof(float) == 0,
              "scratch of scratch_size(), aligned");
  auto* const numbers = reinterpret_cast<float*>(scratch.data());
  const std::size_t count = largest_piece(n, communicator_.size());
  for (std::size_t offset = 0; offset < largest_slice(communicator_.size(), n); offset += count) {
    const Piece piece{.n = n, .offset = offset, .count = count};
    receive_piece(nodes, piece, numbers);
    add_piece(nodes, piece, numbers, sum.data() + std::min(offset, sum.size()));
  }
}

void TreeReduction::all_gather(std::span<float> numbers) const {
  std::vector<std::span<std::byte>> pieces;
  for (std::size_t r = 0; r < communicator_.size(); ++r) {
    const NumberSlice of_rank = slice(r, numbers.size());
    pieces.push_back(std::as_writable_bytes(numbers.subspan(of_rank.first, of_rank.count)));
  }
  spillway::all_gather(communicator_, pieces);
}

void TreeReduction::all_reduce(NodeSums nodes, std::span<float> sum,
                               std::span<std::byte> scratch) const {
  const NumberSlice own = own_slice(sum.size());
  reduce_scatter(nodes, sum.size(), sum.subspan(own.first, own.count), scratch);
  all_gather(sum);
}

void TreeReduction::fast_all_reduce(NodeSums nodes, std::span<float> sum) const {
  um::expects(nodes.size() == own_nodes().size(), "a partial sum of each of this rank's nodes");
  for (const std::span<const float> node : nodes) {
    um::expects(node.size() == sum.size(), "as many numbers in each node as in the sum");
  }
  const NumberKernels& kernels = communicator_.kernels();
  if (nodes.empty()) {
    kernels.fill(sum, 0.0F);
  } else {
    kernels.copy(sum, nodes[0]);
    for (const std::span<const float> node : nodes.subspan(1)) kernels.add(sum, node);
  }
  communicator_.sum(sum);
}

}  // namespace spillway
