#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "src/io/data/batch_loader.h"
#include "src/io/random.h"
#include "tests/refusal.h"

namespace spillway {
namespace {

std::vector<std::size_t> indices(const BatchOrder& order, std::size_t batch, std::uint64_t from,
                                 std::uint64_t to) {
  std::vector<std::size_t> result;
  for (std::uint64_t step = from; step < to; ++step) {
    for (std::size_t place = 0; place < batch; ++place) {
      result.push_back(order(step, place).value());
    }
  }
  return result;
}

TEST(Permutation, HitsEveryNumberOnce) {
  for (const std::size_t size : {1U, 2U, 3U, 4U, 5U, 16U, 17U, 1000U, 1025U}) {
    const Permutation permutation{size, 7, 0};
    std::set<std::size_t> hit;
    for (std::size_t i = 0; i < size; ++i) hit.insert(permutation(i));
    EXPECT_EQ(hit.size(), size);
    EXPECT_EQ(*hit.rbegin(), size - 1);
  }
}

TEST(Permutation, SpreadsNeighbours) {
  // Of 999 neighbouring pairs, a random permutation keeps about two together.
  const Permutation permutation{1000, 7, 0};
  int kept = 0;
  for (std::size_t i = 0; i + 1 < 1000; ++i) {
    const std::size_t a = permutation(i);
    const std::size_t b = permutation(i + 1);
    kept += (a > b ? a - b : b - a) == 1 ? 1 : 0;
  }
  EXPECT_LT(kept, 15);
}

TEST(TrainingOrder, ShowsEachImageAtMostOnceInAnEpoch) {
  const BatchOrder order = training_order(23, 5, 7);
  EXPECT_EQ(steps_per_epoch(23, 5), 4U);
  const std::vector<std::size_t> epoch = indices(order, 5, 0, 4);
  EXPECT_EQ(std::set<std::size_t>(epoch.begin(), epoch.end()).size(), 20U);  // 3 are left out
  EXPECT_LT(*std::max_element(epoch.begin(), epoch.end()), 23U);
}

TEST(TrainingOrder, LeavesOutOthersInOtherEpochs) {
  const BatchOrder order = training_order(23, 5, 7);
  // 50 epochs of 4 steps
  const std::vector<std::size_t> seen = indices(order, 5, 0, 200);
  EXPECT_EQ(std::set<std::size_t>(seen.begin(), seen.end()).size(), 23U);
}

TEST(TrainingOrder, ShufflesEachEpochAnew) {
  const BatchOrder order = training_order(100, 10, 7);
  EXPECT_NE(indices(order, 10, 0, 10), indices(order, 10, 10, 20));
  EXPECT_NE(indices(order, 10, 0, 10), indices(training_order(100, 10, 8), 10, 0, 10));
  EXPECT_EQ(indices(order, 10, 0, 20), indices(training_order(100, 10, 7), 10, 0, 20));
}

TEST(TrainingOrder, RefusesABatchLargerThanTheDataSet) {
  EXPECT_EQ(test::refusal([] { return training_order(100, 101, 7); }),
            "the data set has 100 images to learn from, too few for a batch of 101; use a smaller "
            "--batch");
}

TEST(EvaluationOrder, ShowsEachImageOnceAndThenPads) {
  const BatchOrder order = evaluation_order(5, 3);
  EXPECT_EQ(evaluation_steps(5, 3), 2U);
  EXPECT_EQ(indices(order, 3, 0, 1), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(order(1, 0), 3U);
  EXPECT_EQ(order(1, 1), 4U);
  EXPECT_EQ(order(1, 2), std::nullopt);
  EXPECT_EQ(order(2, 0), std::nullopt);
}

}  // namespace
}  // namespace spillway
