#include "src/ranks/tree_reduction.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "tests/src/ranks/on_ranks.h"
#include "tests/src/ranks/shard_numbers.h"
#include "um/error.h"

namespace spillway {
namespace {

using namespace testing;

// What `ranks` ranks get for the sum of all shards, the same on each of them.
std::vector<float> reduced(std::size_t ranks, std::size_t shards, std::size_t n) {
  ThreadRanks group{ranks};
  std::vector<std::vector<float>> sums(ranks, std::vector<float>(n));
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    const TreeReduction reduction{communicator, shards};
    const auto own = range_sums(reduction.tree(), reduction.own_shards(), n);
    const std::vector<std::span<const float>> nodes(own.begin(), own.end());
    std::vector<std::byte> scratch(reduction.scratch_size(n).count());
    reduction.all_reduce(nodes, sums[communicator.rank()], scratch);
  });
  EXPECT_EQ(errors, no_errors(group));
  for (const auto& sum : sums) EXPECT_TRUE(same_bits(sum, sums[0]));
  return sums[0];
}

RC_GTEST_PROP(TreeReduction, GivesTheSameBitsForAnyNumberOfRanks, ()) {
  const auto shards = *rc::gen::inRange<std::size_t>(1, 40);
  const auto ranks = *rc::gen::inRange<std::size_t>(1, 9);
  const auto n = *rc::gen::inRange<std::size_t>(0, 300);
  RC_ASSERT(same_bits(reduced(ranks, shards, n), tree_sum(shards, n)));
}

// Else the property above would hold of any order.
TEST(TreeReduction, AddsNumbersWhoseSumDependsOnTheOrder) {
  std::vector<float> in_a_row = shard_numbers(0, 100);
  for (std::size_t shard = 1; shard < 7; ++shard) {
    const std::vector<float> next = shard_numbers(shard, 100);
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
  // 4 nodes of others, a piece of 1 MiB of each; of one rank, nothing.
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

}  // namespace
}  // namespace spillway
