#include "src/ranks/tree_reduction.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "src/ranks/sum_tree.h"
#include "tests/src/ranks/micro_batch_numbers.h"
#include "tests/src/ranks/on_ranks.h"
#include "um/error.h"

namespace spillway {
namespace {

using namespace testing;

// Returns the sum of all micro-batches on `ranks` ranks, the same on each of them.
std::vector<float> reduced(std::size_t ranks, std::size_t micro_batches, std::size_t n) {
  ThreadRanks group{ranks};
  std::vector<std::vector<float>> sums(ranks, std::vector<float>(n));
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    const TreeReduction reduction{communicator, micro_batches};
    const auto own = range_sums(reduction.tree(), reduction.own_micro_batches(), n);
    const std::vector<std::span<const float>> nodes(own.begin(), own.end());
    std::vector<std::byte> scratch(reduction.scratch_size(n).count());
    reduction.all_reduce(nodes, sums[communicator.rank()], scratch);
  });
  EXPECT_EQ(errors, no_errors(group));
  for (const auto& sum : sums) EXPECT_TRUE(same_bits(sum, sums[0]));
  return sums[0];
}

RC_GTEST_PROP(TreeReduction, GivesTheSameBitsForAnyNumberOfRanks, ()) {
  const auto micro_batches = *rc::gen::inRange<std::size_t>(1, 40);
  const auto ranks = *rc::gen::inRange<std::size_t>(1, 9);
  const auto n = *rc::gen::inRange<std::size_t>(0, 300);
  RC_ASSERT(same_bits(reduced(ranks, micro_batches, n), tree_sum(micro_batches, n)));
}

// Otherwise the property above would hold for any order.
TEST(TreeReduction, AddsNumbersWhoseSumDependsOnTheOrder) {
  std::vector<float> in_a_row = micro_batch_numbers(0, 100);
  for (std::size_t micro_batch = 1; micro_batch < 7; ++micro_batch) {
    const std::vector<float> next = micro_batch_numbers(micro_batch, 100);
    for (std::size_t i = 0; i < 100; ++i) in_a_row[i] += next[i];
  }
  EXPECT_FALSE(same_bits(in_a_row, tree_sum(7, 100)));
}

TEST(TreeReduction, SlicesAreAllOfTheNumbersAndBeginAtAUnit) {
  for (const std::size_t ranks : {1, 2, 3, 4, 7}) {
    ThreadRanks group{ranks};
    const auto end = group.end(0);
    const TreeReduction reduction{*end, 8};
    for (std::size_t n = 0; n < 300; ++n) {
      std::size_t next = 0;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const NumberSlice slice = reduction.slice(rank, n);
        EXPECT_EQ(slice.first, next);
        EXPECT_TRUE(slice.first % 16 == 0 || slice.first == n);
        EXPECT_LE(slice.count, n / ranks + 32);
        next = slice.first + slice.count;
      }
      EXPECT_EQ(next, n);
    }
  }
}

TEST(TreeReduction, ScratchNeverShrinksAndHasAnEnd) {
  ThreadRanks group{5};
  const auto end = group.end(1);
  const TreeReduction reduction{*end, 5};
  um::Bytes last;
  for (std::size_t n = 0; n < 2000; ++n) {
    EXPECT_GE(reduction.scratch_size(n), last);
    last = reduction.scratch_size(n);
  }
  // 4 nodes of others with a piece of 1 MiB each; nothing for a single rank.
  EXPECT_EQ(reduction.scratch_size(1'000'000'000), um::Bytes{4U << 20U});
  ThreadRanks alone{1};
  const auto only = alone.end(0);
  EXPECT_EQ((TreeReduction{*only, 5}.scratch_size(1'000'000)), um::Bytes{});
}

TEST(TreeReduction, RefusesPartialSumsOfOtherNodes) {
  ThreadRanks group{1};
  const auto end = group.end(0);
  const TreeReduction reduction{*end, 2};
  const std::vector<float> numbers(4);
  std::vector<float> sum(4);
  const std::vector<std::span<const float>> two(2, numbers);
  const std::vector<std::span<const float>> short_one = {std::span{numbers}.first(3)};
  EXPECT_THROW(reduction.all_reduce(two, sum, {}), um::ContractError);
  EXPECT_THROW(reduction.all_reduce(short_one, sum, {}), um::ContractError);
}

using Ranges = std::vector<MicroBatchRange>;

// The stack while a range is pushed micro-batch by micro-batch or node by node. Fails the test if
// two merged sums are not the halves of a node.
class Stack {
 public:
  explicit Stack(const SumTree& tree, const MicroBatchRange& range) : tree_{tree}, range_{range} {}

  void push(const MicroBatchRange& node) {
    nodes_.push_back(node);
    most_ = std::max(most_, nodes_.size());
    for (std::size_t merges = tree_.merges_after(range_, node); merges > 0; --merges) {
      const MicroBatchRange right = nodes_.back();
      nodes_.pop_back();
      const MicroBatchRange left = nodes_.back();
      EXPECT_EQ(left.end, right.first);
      EXPECT_TRUE(std::has_single_bit(left.count()));  // as a tree's left half has
      EXPECT_LE(right.count(), left.count());
      nodes_.back() = {left.first, right.end};
    }
  }
  [[nodiscard]] const Ranges& nodes() const { return nodes_; }
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  const SumTree& tree_;
  MicroBatchRange range_;
  Ranges nodes_;
  std::size_t most_ = 0;
};

Stack summed(const SumTree& tree, const MicroBatchRange& range) {
  Stack stack{tree, range};
  for (std::size_t i = range.first; i < range.end; ++i) stack.push({i, i + 1});
  return stack;
}

TEST(SumTree, SplitsAtTheLargestPowerOfTwoBelow) {
  // [0,6) is [0,4) + [4,6); [0,4) is [0,2) + [2,4).
  const SumTree tree{6};
  EXPECT_EQ(tree.cover({0, 6}), (Ranges{{0, 6}}));
  EXPECT_EQ(tree.cover({0, 5}), (Ranges{{0, 4}, {4, 5}}));
  EXPECT_EQ(tree.cover({1, 6}), (Ranges{{1, 2}, {2, 4}, {4, 6}}));
  EXPECT_EQ(tree.cover({3, 3}), Ranges{});
}

TEST(SumTree, TellsHowManySumsFollowAMicroBatch) {
  const SumTree tree{8};
  const auto merges = [&](const MicroBatchRange& range) {
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

TEST(SumTree, RanksHaveContiguousSharesOfAllMicroBatches) {
  for (std::size_t micro_batches = 0; micro_batches <= 64; ++micro_batches) {
    for (std::size_t ranks = 1; ranks <= 70; ++ranks) {
      std::size_t end = 0;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const MicroBatchRange range = micro_batches_of_rank(micro_batches, ranks, rank);
        EXPECT_EQ(range.first, end);
        EXPECT_GE(range.count(), micro_batches / ranks);
        EXPECT_LE(range.count(), (micro_batches + ranks - 1) / ranks);
        end = range.end;
      }
      EXPECT_EQ(end, micro_batches);
    }
  }
}

TEST(SumTree, ARanksStackEndsWithItsCover) {
  for (std::size_t micro_batches = 1; micro_batches <= 64; ++micro_batches) {
    const SumTree tree{micro_batches};
    for (std::size_t ranks = 1; ranks <= micro_batches; ++ranks) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const MicroBatchRange range = micro_batches_of_rank(micro_batches, ranks, rank);
        const Stack stack = summed(tree, range);
        ASSERT_EQ(stack.nodes(), tree.cover(range));
        ASSERT_EQ(stack.most(), tree.stack_depth(range));
      }
    }
  }
}

TEST(SumTree, TheCoversOfAllRanksMakeTheRoot) {
  for (std::size_t micro_batches = 1; micro_batches <= 64; ++micro_batches) {
    const SumTree tree{micro_batches};
    for (std::size_t ranks = 1; ranks <= micro_batches; ++ranks) {
      Stack stack{tree, tree.root()};
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        for (const MicroBatchRange& node :
             tree.cover(micro_batches_of_rank(micro_batches, ranks, rank))) {
          stack.push(node);
        }
      }
      ASSERT_EQ(stack.nodes(), Ranges{tree.root()});
    }
  }
}

TEST(SumTree, EqualPowersOfTwoAreOneNode) {
  for (std::size_t share = 1; share <= 16; share *= 2) {
    for (std::size_t ranks = 1; ranks <= 9; ++ranks) {
      const SumTree tree{share * ranks};
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const MicroBatchRange range = micro_batches_of_rank(share * ranks, ranks, rank);
        EXPECT_EQ(tree.cover(range), Ranges{range});
      }
    }
  }
}

RC_GTEST_PROP(SumTree, AnyRangeIsCoveredByFewNodesThatItsStackMakes, ()) {
  const auto micro_batches = *rc::gen::inRange<std::size_t>(1, 3000);
  const auto first = *rc::gen::inRange<std::size_t>(0, micro_batches);
  const auto end = *rc::gen::inRange<std::size_t>(first, micro_batches + 1);
  const SumTree tree{micro_batches};
  const Ranges cover = tree.cover({first, end});
  std::size_t at = first;
  for (const MicroBatchRange& node : cover) {
    RC_ASSERT(node.first == at);
    at = node.end;
  }
  RC_ASSERT(at == end);
  RC_ASSERT(cover.size() <= 2 * static_cast<std::size_t>(std::bit_width(micro_batches)));
  RC_ASSERT(summed(tree, {first, end}).nodes() == cover);
}

}  // namespace
}  // namespace spillway
