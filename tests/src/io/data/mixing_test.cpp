#include "src/io/data/mixing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "src/io/data/batch_loader.h"
#include "src/io/random.h"

namespace spillway {
namespace {

using Numbers = std::vector<float>;
using MixedLabels = std::vector<std::int32_t>;

constexpr nets::Shape kMixedImage{.channels = 2, .height = 40, .width = 30};
constexpr std::size_t kCount = 4;
constexpr std::size_t kMixedPixels = kMixedImage.height * kMixedImage.width;

// All pixels of all images have different numbers.
Numbers some_images() {
  Numbers images(kCount * kMixedImage.elements());
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i);
  return images;
}

// Gives image i the label 10 i.
MixedLabels unmixed_labels() {
  MixedLabels labels(kCount * kMixedLabelNumbers, 77);
  for (std::size_t i = 0; i < kCount; ++i) labels[3 * i] = static_cast<std::int32_t>(10 * i);
  return labels;
}

float part_in(const MixedLabels& labels, std::size_t i) {
  return std::bit_cast<float>(labels[3 * i + 2]);
}

TEST(Mixup, BlendsEachImageWithTheOneBeforeIt) {
  const Numbers before = some_images();
  const BatchMix mix{{.mixup = 0.4F}, kMixedImage, Random{3}};
  Numbers images = before;
  MixedLabels labels = unmixed_labels();
  mix.apply(images, labels);
  const float part = mix.part();
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::size_t other = (i + kCount - 1) % kCount;
    for (std::size_t j = 0; j < kMixedImage.elements(); ++j) {
      const float own = before[i * kMixedImage.elements() + j];
      const float mixed = (1 - part) * own + part * before[other * kMixedImage.elements() + j];
      ASSERT_NEAR(images[i * kMixedImage.elements() + j], mixed, 1e-3F) << i << ' ' << j;
    }
    EXPECT_EQ(labels[3 * i], static_cast<std::int32_t>(10 * i));
    EXPECT_EQ(labels[3 * i + 1], static_cast<std::int32_t>(10 * other));
    EXPECT_EQ(part_in(labels, i), part);
  }
}

// The fraction is that of the rectangle's area, which is the same for all channels and images.
TEST(CutMix, PutsARectangleOfTheOneBeforeIntoEachImage) {
  const Numbers before = some_images();
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const BatchMix mix{{.cutmix = 1}, kMixedImage, Random{seed}};
    Numbers images = before;
    MixedLabels labels = unmixed_labels();
    mix.apply(images, labels);
    std::size_t left = kMixedImage.width, right = 0, top = kMixedImage.height, bottom = 0,
                changed = 0;
    for (std::size_t j = 0; j < images.size(); ++j) {
      if (images[j] == before[j]) continue;
      const std::size_t wrap = j < kMixedImage.elements() ? before.size() : 0;
      ASSERT_EQ(images[j], before[j + wrap - kMixedImage.elements()]);
      const std::size_t pixel = j % kMixedPixels;
      left = std::min(left, pixel % kMixedImage.width);
      right = std::max(right, pixel % kMixedImage.width + 1);
      top = std::min(top, pixel / kMixedImage.width);
      bottom = std::max(bottom, pixel / kMixedImage.width + 1);
      ++changed;
    }
    const std::size_t area = changed == 0 ? 0 : (right - left) * (bottom - top);
    EXPECT_EQ(changed, area * kMixedImage.channels * kCount);
    EXPECT_EQ(part_in(labels, 1), static_cast<float>(static_cast<double>(area) / kMixedPixels));
    EXPECT_EQ(labels[3], 10);
    EXPECT_EQ(labels[4], 0);
  }
}

TEST(BatchMix, TakesEitherWayAsOftenWhereBothAreGiven) {
  int cut = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Numbers images(kCount * kMixedImage.elements());
    for (std::size_t i = 0; i < images.size(); ++i) {
      images[i] = static_cast<float>(i / kMixedImage.elements());
    }
    MixedLabels labels = unmixed_labels();
    BatchMix{{.mixup = 1, .cutmix = 1}, kMixedImage, Random{seed}}.apply(images, labels);
    // Only CutMix keeps all numbers integers.
    cut += std::ranges::all_of(images, [](float x) { return x == std::floor(x); }) ? 1 : 0;
  }
  EXPECT_NEAR(cut, 200, 40);
}

// The second image is broken: neither it nor the third, which it would be mixed into, changes.
TEST(BatchMix, LeavesImagesWithoutALabelAlone) {
  for (const MixOptions& options : {MixOptions{.mixup = 1}, MixOptions{.cutmix = 1}}) {
    const Numbers before = some_images();
    const BatchMix mix{options, kMixedImage, Random{8}};
    ASSERT_GT(mix.part(), 0.05F);
    Numbers images = before;
    MixedLabels labels = unmixed_labels();
    labels[3] = -1;
    mix.apply(images, labels);
    const auto is_as_before = [&](std::size_t i) {
      const auto begin = static_cast<std::ptrdiff_t>(i * kMixedImage.elements());
      return std::equal(
          images.begin() + begin,
          images.begin() + begin + static_cast<std::ptrdiff_t>(kMixedImage.elements()),
          before.begin() + begin);
    };
    EXPECT_FALSE(is_as_before(0));
    EXPECT_TRUE(is_as_before(1));
    EXPECT_TRUE(is_as_before(2));
    EXPECT_FALSE(is_as_before(3));
    EXPECT_EQ(labels[3], -1);
    EXPECT_EQ(labels[7], 20);
    EXPECT_EQ(part_in(labels, 2), 0.F);
    EXPECT_EQ(part_in(labels, 3), mix.part());
  }
}

// Mean 1/2, variance 1 / (4 (2 a + 1)), and fourth central moment 3 / (16 (2 a + 1) (2 a + 3)).
TEST(DrawnBeta, HasTheMomentsOfItsDistribution) {
  for (const double alpha : {0.05, 0.2, 0.4, 1.0, 1.5, 4.0, 100.0}) {
    constexpr int kDraws = 40'000;
    Random random{static_cast<std::uint64_t>(alpha * 100)};
    double sum = 0, squares = 0, fourths = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double x = drawn_beta(alpha, random);
      ASSERT_TRUE(0 <= x && x <= 1) << x;
      const double square = (x - 0.5) * (x - 0.5);
      sum += x;
      squares += square;
      fourths += square * square;
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    const double fourth = 3 / (16 * (2 * alpha + 1) * (2 * alpha + 3));
    // Tolerances of five standard deviations.
    EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws, variance, 5 * std::sqrt(fourth / kDraws)) << alpha;
    EXPECT_NEAR(fourths / kDraws, fourth, 0.05 * fourth) << alpha;
  }
}

TEST(DrawnBeta, IsOneOfTheEndsWhereAlphaIsTiny) {
  Random random{1};
  int low = 0;
  for (int i = 0; i < 1000; ++i) {
    const double x = drawn_beta(1e-6, random);
    EXPECT_TRUE(x < 1e-3 || x > 1 - 1e-3) << x;
    low += x < 0.5 ? 1 : 0;
  }
  EXPECT_NEAR(low, 500, 80);
}

// Image i is filled with i and has the label i.
class Filled final : public Dataset {
 public:
  [[nodiscard]] std::string name() const override { return "filled"; }
  [[nodiscard]] nets::Shape image() const override { return {1, 4, 4}; }
  [[nodiscard]] std::size_t classes() const override { return 16; }
  [[nodiscard]] std::size_t size() const override { return 13; }
  void read(std::size_t index, std::span<float> image) const override {
    std::ranges::fill(image, static_cast<float>(index));
  }
  [[nodiscard]] std::int32_t label(std::size_t index) const override {
    return static_cast<std::int32_t>(index);
  }
};

struct Loaded {
  Numbers images;
  MixedLabels labels;
  friend bool operator==(const Loaded&, const Loaded&) = default;
};

std::vector<Loaded> loaded(const MixOptions& mixing, std::size_t threads, std::uint64_t first = 0,
                           const std::optional<BatchPart>& part = {}) {
  const Filled dataset;
  BatchLoader loader{dataset, 3, 7, first, {.threads = threads, .mixing = mixing, .part = part}};
  std::vector<Loaded> all;
  for (std::uint64_t step = first; step < 40; ++step) {
    const Batch& batch = loader.next();
    EXPECT_EQ(batch.is_mixed, mixing.is_on());
    all.push_back(
        {{batch.images.begin(), batch.images.end()}, {batch.labels.begin(), batch.labels.end()}});
  }
  return all;
}

TEST(BatchLoader, MixesTheSameWithAnyNumberOfThreadsAndFromAnyStep) {
  const MixOptions mixing{.mixup = 0.2F, .cutmix = 1};
  const std::vector<Loaded> all = loaded(mixing, 1);
  EXPECT_EQ(all, loaded(mixing, 2));
  EXPECT_EQ(all, loaded(mixing, 8));
  EXPECT_TRUE(std::ranges::equal(loaded(mixing, 8, 5), std::span{all}.subspan(5)));
  EXPECT_NE(all, loaded({.mixup = 0.2F}, 1));
}

// Mixed images are the unmixed ones, blended by the fractions beside the labels.
TEST(BatchLoader, MixesWhatItWouldLoad) {
  const std::vector<Loaded> plain = loaded({}, 2);
  const std::vector<Loaded> mixed = loaded({.mixup = 1}, 2);
  for (std::size_t step = 0; step < plain.size(); ++step) {
    ASSERT_EQ(mixed[step].labels.size(), 3 * kMixedLabelNumbers);
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int32_t other = plain[step].labels[(i + 2) % 3];
      EXPECT_EQ(mixed[step].labels[3 * i], plain[step].labels[i]);
      EXPECT_EQ(mixed[step].labels[3 * i + 1], other);
      const float part = part_in(mixed[step].labels, i);
      const float value =
          (1 - part) * static_cast<float>(plain[step].labels[i]) + part * static_cast<float>(other);
      EXPECT_NEAR(mixed[step].images[16 * i + 5], value, 1e-5F);
    }
  }
  EXPECT_NE(part_in(mixed[0].labels, 0), part_in(mixed[1].labels, 0));  // drawn anew in each step
}

// The first image of each batch is mixed with the last one, the second with the first.
TEST(BatchLoader, MixesPartsAsInTheBatch) {
  const MixOptions mixing{.mixup = 0.2F, .cutmix = 1};
  const std::vector<Loaded> all = loaded(mixing, 2);
  for (const BatchPart& part : {BatchPart{0, 1}, BatchPart{1, 2}, BatchPart{0, 3}}) {
    const auto of_part = [&part](const auto& numbers) {
      const std::size_t each = numbers.size() / 3;
      const auto own = std::span{numbers}.subspan(each * part.first, each * part.count);
      return std::vector(own.begin(), own.end());
    };
    std::vector<Loaded> wanted;
    for (const Loaded& each : all) wanted.push_back({of_part(each.images), of_part(each.labels)});
    EXPECT_EQ(loaded(mixing, 2, 0, part), wanted) << part.first;
  }
}

TEST(BatchLoader, CountsTheLabelsOfAMixedBatchOnceEach) {
  const Filled dataset;
  BatchLoader loader{dataset, 3, 7, 0, {.mixing = {.mixup = 1}}};
  EXPECT_EQ(count_labels(loader.next()), 3U);
  // Three batches of three images of 16 numbers, with three numbers per label.
  EXPECT_EQ(loader.bytes(), um::Bytes{3 * 3 * (16 * 4 + 3 * 4)});
}

}  // namespace
}  // namespace spillway
