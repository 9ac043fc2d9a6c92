#include "src/ranks/sum_tree.h"

#include <algorithm>
#include <bit>

#include "um/error.h"

namespace spillway {
namespace {

// Returns the split point of a node of more than one micro-batch.
std::size_t middle(const MicroBatchRange& node) {
  return node.first + std::bit_floor(node.count() - 1);
}

}  // namespace

MicroBatchRange micro_batches_of_rank(std::size_t micro_batches, std::size_t ranks,
                                      std::size_t rank) {
  um::expects(rank < ranks, "a rank that is one of all");
  return {micro_batches * rank / ranks, micro_batches * (rank + 1) / ranks};
}

SumTree::SumTree(std::size_t micro_batches) : micro_batches_{micro_batches} {
  um::expects(micro_batches > 0, "a tree of at least one micro-batch");
}

std::vector<MicroBatchRange> SumTree::cover(const MicroBatchRange& range) const {
  um::expects(root().contains(range), "micro-batches of the tree");
  std::vector<MicroBatchRange> nodes;
  std::vector<MicroBatchRange> left = {root()};  // stack of nodes to visit, the first on top
  while (!left.empty()) {
    const MicroBatchRange node = left.back();
    left.pop_back();
    if (node.first >= range.end || range.first >= node.end) continue;
    if (range.contains(node)) {
      nodes.push_back(node);
      continue;
    }
    left.push_back({middle(node), node.end});
    left.push_back({node.first, middle(node)});
  }
  return nodes;
}

std::size_t SumTree::merges_after(const MicroBatchRange& range,
                                  const MicroBatchRange& pushed) const {
  um::expects(root().contains(range) && range.contains(pushed) && pushed.count() > 0,
              "a node of a range of the tree");
  std::size_t merges = 0;
  MicroBatchRange node = root();
  while (node != pushed) {
    um::expects(node.count() > 1 && node.contains(pushed), "a node of the tree");
    if (range.contains(node) && node.end == pushed.end) ++merges;
    const std::size_t half = middle(node);
    node =
        pushed.first < half ? MicroBatchRange{node.first, half} : MicroBatchRange{half, node.end};
  }
  return merges;
}

std::size_t SumTree::stack_depth(const MicroBatchRange& range) const {
  std::size_t depth = 0;
  std::size_t most = 0;
  for (std::size_t micro_batch = range.first; micro_batch < range.end; ++micro_batch) {
    most = std::max(most, ++depth);
    depth -= merges_after(range, micro_batch);
  }
  return most;
}

}  // namespace spillway
