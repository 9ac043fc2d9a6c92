#include "src/ranks/shard_tree.h"

#include <algorithm>
#include <bit>

#include "um/error.h"

namespace spillway {
namespace {

// Returns the split point of a node of more than one shard.
std::size_t middle(const ShardRange& node) { return node.first + std::bit_floor(node.count() - 1); }

}  // namespace

ShardRange shards_of_rank(std::size_t shards, std::size_t ranks, std::size_t rank) {
  um::expects(rank < ranks, "a rank that is one of all");
  return {shards * rank / ranks, shards * (rank + 1) / ranks};
}

ShardTree::ShardTree(std::size_t shards) : shards_{shards} {
  um::expects(shards > 0, "a tree of at least one shard");
}

std::vector<ShardRange> ShardTree::cover(const ShardRange& range) const {
  um::expects(root().contains(range), "shards of the tree");
  std::vector<ShardRange> nodes;
  std::vector<ShardRange> left = {root()};  // stack of nodes to visit, the first on top
  while (!left.empty()) {
    const ShardRange node = left.back();
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

std::size_t ShardTree::merges_after(const ShardRange& range, const ShardRange& pushed) const {
  um::expects(root().contains(range) && range.contains(pushed) && pushed.count() > 0,
              "a node of a range of the tree");
  std::size_t merges = 0;
  ShardRange node = root();
  while (node != pushed) {
    um::expects(node.count() > 1 && node.contains(pushed), "a node of the tree");
    if (range.contains(node) && node.end == pushed.end) ++merges;
    const std::size_t half = middle(node);
    node = pushed.first < half ? ShardRange{node.first, half} : ShardRange{half, node.end};
  }
  return merges;
}

std::size_t ShardTree::stack_depth(const ShardRange& range) const {
  std::size_t depth = 0;
  std::size_t most = 0;
  for (std::size_t shard = range.first; shard < range.end; ++shard) {
    most = std::max(most, ++depth);
    depth -= merges_after(range, shard);
  }
  return most;
}

}  // namespace spillway
