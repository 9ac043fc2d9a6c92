#include "src/io/data/batch_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "src/io/random.h"
#include "tests/refusal.h"
#include "um/error.h"

namespace spillway {
namespace {

// Image i is filled with i and has the label i. Reading `broken` fails.
class CountingDataset final : public Dataset {
 public:
  explicit CountingDataset(std::size_t size, std::optional<std::size_t> broken = {})
      : size_{size}, broken_{broken} {}

  [[nodiscard]] std::string name() const override { return "numbers"; }
  [[nodiscard]] nets::Shape image() const override {
    return {.channels = 2, .height = 1, .width = 2};
  }
  [[nodiscard]] std::size_t classes() const override { return size_; }
  [[nodiscard]] std::size_t size() const override { return size_; }
  void read(std::size_t index, std::span<float> image) const override {
    if (index == broken_) throw um::Error{"image " + std::to_string(index) + " is broken"};
    for (float& value : image) value = static_cast<float>(index);
    ++reads_;
  }
  [[nodiscard]] std::int32_t label(std::size_t index) const override {
    return static_cast<std::int32_t>(index);
  }
  [[nodiscard]] std::size_t reads() const { return reads_; }

 private:
  std::size_t size_;
  std::optional<std::size_t> broken_;
  mutable std::atomic<std::size_t> reads_ = 0;
};

using Labels = std::pmr::vector<std::int32_t>;

std::vector<Labels> labels_of(BatchLoader& loader, int steps) {
  std::vector<Labels> labels(static_cast<std::size_t>(steps));
  for (Labels& of_step : labels) of_step = loader.next().labels;
  return labels;
}

TEST(BatchLoader, PutsEachImageBesideItsLabel) {
  const CountingDataset dataset{10};
  BatchLoader loader{dataset, 3, 7, 0};
  for (int step = 0; step < 7; ++step) {
    const Batch& batch = loader.next();
    ASSERT_EQ(batch.images.size(), 3U * 4U);
    ASSERT_EQ(batch.labels.size(), 3U);
    for (std::size_t i = 0; i < batch.images.size(); ++i) {
      EXPECT_EQ(batch.images[i], static_cast<float>(batch.labels[i / 4]));
    }
  }
}

TEST(BatchLoader, ShowsEachImageOnceInAnEpoch) {
  const CountingDataset dataset{12};
  BatchLoader loader{dataset, 4, 7, 0};
  std::set<std::int32_t> seen;
  for (const Labels& labels : labels_of(loader, 3)) seen.insert(labels.begin(), labels.end());
  EXPECT_EQ(seen.size(), 12U);
}

TEST(BatchLoader, GoesOnFromAnyStepAsIfItHadNotStopped) {
  const CountingDataset dataset{11};
  BatchLoader whole{dataset, 2, 7, 0};
  const std::vector<Labels> all = labels_of(whole, 20);  // four epochs of five steps
  for (const std::uint64_t first : {1U, 5U, 13U}) {
    BatchLoader rest{dataset, 2, 7, first};
    EXPECT_EQ(labels_of(rest, static_cast<int>(20 - first)),
              std::vector<Labels>(all.begin() + static_cast<std::ptrdiff_t>(first), all.end()));
  }
}

TEST(BatchLoader, GivesTheSameBatchesAtAnyDepth) {
  const CountingDataset dataset{11};
  BatchLoader shallow{dataset, 2, 7, 0, {.prefetch_depth = 1}};
  BatchLoader deep{dataset, 2, 7, 0, {.prefetch_depth = 8}};
  EXPECT_EQ(labels_of(shallow, 20), labels_of(deep, 20));
}

TEST(BatchLoader, GivesTheSameBatchesWithAnyNumberOfThreads) {
  const CountingDataset dataset{31};
  BatchLoader one{dataset, 5, 7, 0};
  const std::vector<Labels> expected = labels_of(one, 200);
  for (const std::size_t threads : {2U, 8U, 40U}) {
    BatchLoader loader{dataset, 5, 7, 0, {.threads = threads}};
    EXPECT_EQ(labels_of(loader, 200), expected) << threads;
  }
}

TEST(BatchLoader, LoadsNoFurtherAheadThanItsDepth) {
  const CountingDataset dataset{100};
  BatchLoader loader{dataset, 2, 7, 0, {.prefetch_depth = 3}};
  for (std::size_t step = 1; step <= 20; ++step) {
    static_cast<void>(loader.next());
    EXPECT_LE(dataset.reads(), 2 * (step + 3));
  }
}

// Records allocations and deallocations.
class NotingMemory final : public std::pmr::memory_resource {
 public:
  [[nodiscard]] bool has(const void* address) const {
    const std::lock_guard lock{mutex_};
    return blocks_.contains(address);
  }
  [[nodiscard]] std::size_t allocations() const { return allocations_; }
  [[nodiscard]] bool is_empty() const { return blocks_.empty(); }

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    void* const block = std::pmr::new_delete_resource()->allocate(size, alignment);
    const std::lock_guard lock{mutex_};
    ++allocations_;
    blocks_.insert(block);
    return block;
  }
  void do_deallocate(void* block, std::size_t size, std::size_t alignment) override {
    const std::lock_guard lock{mutex_};
    blocks_.erase(block);
    std::pmr::new_delete_resource()->deallocate(block, size, alignment);
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  mutable std::mutex mutex_;
  std::set<const void*> blocks_;
  std::atomic<std::size_t> allocations_ = 0;
};

TEST(BatchLoader, HasAllItsBatchesInTheMemoryGivenAndAllocatesNoMoreThanThose) {
  const CountingDataset dataset{11};
  NotingMemory memory;
  {
    BatchLoader loader{dataset, 2, 7, 0, {.prefetch_depth = 3, .memory = &memory}};
    for (int step = 0; step < 20; ++step) {
      const Batch& batch = loader.next();
      EXPECT_TRUE(memory.has(batch.images.data()) && memory.has(batch.labels.data())) << step;
    }
  }
  // At most images and labels of three prefetched batches and the current one.
  EXPECT_LE(memory.allocations(), 4U * 2U);
  EXPECT_TRUE(memory.is_empty());
}

TEST(BatchLoader, PadsTheLastBatchOfAnEvaluation) {
  const CountingDataset dataset{5};
  BatchLoader loader{dataset, 3, evaluation_order(5, 3)};
  EXPECT_EQ(loader.next().labels, (Labels{0, 1, 2}));
  const Batch& last = loader.next();
  EXPECT_EQ(last.labels, (Labels{3, 4, -1}));
  EXPECT_EQ(last.images, (std::pmr::vector<float>{3, 3, 3, 3, 4, 4, 4, 4, 0, 0, 0, 0}));
}

TEST(BatchLoader, HandsOverWhatReadingThrewAfterTheBatchesBeforeIt) {
  const CountingDataset dataset{10, 4};
  BatchLoader loader{dataset, 2, evaluation_order(10, 2)};
  EXPECT_EQ(loader.next().labels, (Labels{0, 1}));
  EXPECT_EQ(loader.next().labels, (Labels{2, 3}));
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(test::refusal([&] { static_cast<void>(loader.next()); }), "image 4 is broken");
  }
}

// The first failing image of the batch is reported, whichever fails first in time.
TEST(BatchLoader, HandsOverTheFirstOfSeveralFailures) {
  class BrokenFromFive final : public Dataset {
   public:
    [[nodiscard]] std::string name() const override { return "broken"; }
    [[nodiscard]] nets::Shape image() const override { return {1, 1, 1}; }
    [[nodiscard]] std::size_t classes() const override { return 1; }
    [[nodiscard]] std::size_t size() const override { return 64; }
    void read(std::size_t index, std::span<float> /*image*/) const override {
      if (index == 5) std::this_thread::yield();
      if (index >= 5) throw um::Error{"image " + std::to_string(index) + " is broken"};
    }
    [[nodiscard]] std::int32_t label(std::size_t /*index*/) const override { return 0; }
  };
  const BrokenFromFive dataset;
  for (int i = 0; i < 100; ++i) {
    BatchLoader loader{dataset, 4, evaluation_order(64, 4), {.threads = 8}};
    static_cast<void>(loader.next());
    EXPECT_EQ(test::refusal([&] { static_cast<void>(loader.next()); }), "image 5 is broken");
    EXPECT_EQ(loader.peek(), nullptr);
  }
}

TEST(BatchLoader, SaysHowLongItWaitedAndWhatItHolds) {
  const CountingDataset dataset{10};
  BatchLoader loader{dataset, 2, 7, 0, {.prefetch_depth = 3}};
  static_cast<void>(loader.next());
  EXPECT_GE(loader.waited(), um::Nanoseconds{0});
  EXPECT_EQ(loader.bytes(), um::Bytes{4 * 2 * (4 * 4 + 4)});  // four batches of two images
}

// Each epoch shows images in its own way, from any first step.
TEST(BatchLoader, TellsTheDataSetTheEpoch) {
  class Epochs final : public Dataset {
   public:
    [[nodiscard]] std::string name() const override { return "epochs"; }
    [[nodiscard]] nets::Shape image() const override { return {1, 1, 1}; }
    [[nodiscard]] std::size_t classes() const override { return 1; }
    [[nodiscard]] std::size_t size() const override { return 5; }
    void read(std::size_t /*index*/, std::span<float> /*image*/) const override {}
    [[nodiscard]] std::int32_t label(std::size_t /*index*/) const override { return 0; }
    void show(std::size_t /*index*/, std::uint64_t epoch, std::span<float> image,
              std::span<std::int32_t> labels) const override {
      image[0] = 0;
      labels[0] = static_cast<std::int32_t>(epoch);
    }
  };
  const Epochs dataset;
  BatchLoader loader{dataset, 2, 7, 3};  // two steps an epoch
  EXPECT_EQ(labels_of(loader, 3), (std::vector<Labels>{{1, 1}, {2, 2}, {2, 2}}));
  BatchLoader evaluation{dataset, 2, evaluation_order(5, 2)};
  EXPECT_EQ(labels_of(evaluation, 3), (std::vector<Labels>{{0, 0}, {0, 0}, {0, -1}}));
}

TEST(BatchLoader, EndsItsThreadsWithBatchesLeftOver) {
  const CountingDataset dataset{1000};
  for (int i = 0; i < 50; ++i) {
    BatchLoader loader{dataset, 10, 7, 0, {.threads = 1 + static_cast<std::size_t>(i % 3)}};
    if (i % 2 == 0) static_cast<void>(loader.next());
  }
  EXPECT_GE(dataset.reads(), 25U * 10U);
}

TEST(BatchLoader, RefusesABatchLargerThanTheDataSet) {
  const CountingDataset dataset{10};
  EXPECT_EQ(test::refusal([&] {
              BatchLoader{dataset, 11, 7, 0};
            }),
            "the data set has 10 images to learn from, too few for a batch of 11; use a smaller "
            "--batch");
}

// An image is a row of two pixels.
class LabelledPixels final : public Dataset {
 public:
  [[nodiscard]] std::string name() const override { return "pixels"; }
  [[nodiscard]] nets::Shape image() const override { return {1, 1, 2}; }
  [[nodiscard]] std::size_t classes() const override { return 100; }
  [[nodiscard]] std::size_t size() const override { return 3; }
  void read(std::size_t index, std::span<float> image) const override {
    std::ranges::fill(image, static_cast<float>(index));
  }
  [[nodiscard]] std::int32_t label(std::size_t index) const override {
    return static_cast<std::int32_t>(index);
  }
  [[nodiscard]] bool labels_pixels() const override { return true; }
  void labels(std::size_t index, std::span<std::int32_t> labels) const override {
    labels[0] = label(index);
    labels[1] = 10 + label(index);
  }
};

TEST(BatchLoader, LoadsALabelForEachPixelWhereThereAreSuch) {
  const LabelledPixels dataset;
  BatchLoader loader{dataset, 2, evaluation_order(dataset.size(), 2)};
  EXPECT_EQ(loader.next().labels, (Labels{0, 10, 1, 11}));
  EXPECT_EQ(loader.next().labels, (Labels{2, 12, -1, -1}));
}

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
  // A random permutation of 1000 keeps about two of 999 neighbouring pairs together.
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
  EXPECT_EQ(std::set<std::size_t>(epoch.begin(), epoch.end()).size(), 20U);  // 3 are omitted
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
