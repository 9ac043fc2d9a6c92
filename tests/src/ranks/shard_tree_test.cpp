#include "src/ranks/shard_tree.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace spillway {
namespace {

using Ranges = std::vector<ShardRange>;

// What is on the stack after a range has been pushed shard by shard, or node by node; fails the
// test where two that are added are not the halves of a node.
class Stack {
 public:
  explicit Stack(const ShardTree& tree, const ShardRange& range) : tree_{tree}, range_{range} {}

  void push(const ShardRange& node) {
    nodes_.push_back(node);
    most_ = std::max(most_, nodes_.size());
    for (std::size_t merges = tree_.merges_after(range_, node); merges > 0; --merges) {
      const ShardRange right = nodes_.back();
      nodes_.pop_back();
      const ShardRange left = nodes_.back();
      EXPECT_EQ(left.end, right.first);
      EXPECT_TRUE(std::has_single_bit(left.count()));  // so a tree's left half is
      EXPECT_LE(right.count(), left.count());
      nodes_.back() = {left.first, right.end};
    }
  }
  [[nodiscard]] const Ranges& nodes() const { return nodes_; }
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  const ShardTree& tree_;
  ShardRange range_;
  Ranges nodes_;
  std::size_t most_ = 0;
};

Stack summed(const ShardTree& tree, const ShardRange& range) {
  Stack stack{tree, range};
  for (std::size_t i = range.first; i < range.end; ++i) stack.push({i, i + 1});
  return stack;
}

TEST(ShardTree, SplitsAtTheLargestPowerOfTwoBelow) {
  // [0,6) is [0,4) + [4,6); [0,4) is [0,2) + [2,4).
  const ShardTree tree{6};
  EXPECT_EQ(tree.cover({0, 6}), (Ranges{{0, 6}}));
  EXPECT_EQ(tree.cover({0, 5}), (Ranges{{0, 4}, {4, 5}}));
  EXPECT_EQ(tree.cover({1, 6}), (Ranges{{1, 2}, {2, 4}, {4, 6}}));
  EXPECT_EQ(tree.cover({3, 3}), Ranges{});
}

TEST(ShardTree, TellsHowManySumsFollowAShard) {
  const ShardTree tree{8};
  const auto merges = [&](const ShardRange& range) {
    std::vector<std::size_t> all;
    for (std::size_t i = range.first; i < range.end; ++i)
      all.push_back(tree.merges_after(range, i));
    return all;
  };
  EXPECT_EQ(merges({0, 8}), (std::vector<std::size_t>{0, 1, 0, 2, 0, 1, 0, 3}));
  EXPECT_EQ(merges({3, 8}), (std::vector<std::size_t>{0, 0, 1, 0, 2}));
  EXPECT_EQ(tree.stack_depth({0, 8}), 4U);  // 0-3, 4-5, 6, 7
  EXPECT_EQ(tree.stack_depth({3, 3}), 0U);
}

TEST(ShardTree, RanksHaveContiguousSharesOfAllShards) {
  for (std::size_t shards = 0; shards <= 64; ++shards) {
    for (std::size_t ranks = 1; ranks <= 70; ++ranks) {
      std::size_t end = 0;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const ShardRange range = shards_of_rank(shards, ranks, rank);
        EXPECT_EQ(range.first, end);
        EXPECT_GE(range.count(), shards / ranks);
        EXPECT_LE(range.count(), (shards + ranks - 1) / ranks);
        end = range.end;
      }
      EXPECT_EQ(end, shards);
    }
  }
}

TEST(ShardTree, ARanksStackEndsWithItsCover) {
  for (std::size_t shards = 1; shards <= 64; ++shards) {
    const ShardTree tree{shards};
    for (std::size_t ranks = 1; ranks <= shards; ++ranks) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const ShardRange range = shards_of_rank(shards, ranks, rank);
        const Stack stack = summed(tree, range);
        ASSERT_EQ(stack.nodes(), tree.cover(range));
        ASSERT_EQ(stack.most(), tree.stack_depth(range));
      }
    }
  }
}

TEST(ShardTree, TheCoversOfAllRanksMakeTheRoot) {
  for (std::size_t shards = 1; shards <= 64; ++shards) {
    const ShardTree tree{shards};
    for (std::size_t ranks = 1; ranks <= shards; ++ranks) {
      Stack stack{tree, tree.root()};
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        for (const ShardRange& node : tree.cover(shards_of_rank(shards, ranks, rank))) {
          stack.push(node);
        }
      }
      ASSERT_EQ(stack.nodes(), Ranges{tree.root()});
    }
  }
}

TEST(ShardTree, EqualPowersOfTwoAreOneNode) {
  for (std::size_t share = 1; share <= 16; share *= 2) {
    for (std::size_t ranks = 1; ranks <= 9; ++ranks) {
      const ShardTree tree{share * ranks};
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const ShardRange range = shards_of_rank(share * ranks, ranks, rank);
        EXPECT_EQ(tree.cover(range), Ranges{range});
      }
    }
  }
}

RC_GTEST_PROP(ShardTree, AnyRangeIsCoveredByFewNodesThatItsStackMakes, ()) {
  const auto shards = *rc::gen::inRange<std::size_t>(1, 3000);
  const auto first = *rc::gen::inRange<std::size_t>(0, shards);
  const auto end = *rc::gen::inRange<std::size_t>(first, shards + 1);
  const ShardTree tree{shards};
  const Ranges cover = tree.cover({first, end});
  std::size_t at = first;
  for (const ShardRange& node : cover) {
    RC_ASSERT(node.first == at);
    at = node.end;
  }
  RC_ASSERT(at == end);
  RC_ASSERT(cover.size() <= 2 * static_cast<std::size_t>(std::bit_width(shards)));
  RC_ASSERT(summed(tree, {first, end}).nodes() == cover);
}

}  // namespace
}  // namespace spillway
