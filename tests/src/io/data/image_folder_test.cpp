#include "src/io/data/image_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/io/data/batch_loader.h"
#include "src/io/data/dataset.h"
#include "src/io/data/open_dataset.h"
#include "src/io/images/image_pipeline.h"
#include "src/ops/narrow_floats.h"
#include "tests/refusal.h"
#include "tests/src/byte_dataset.h"
#include "tests/src/io/images/image_files.h"

namespace spillway::test {
namespace {

namespace fs = std::filesystem;

constexpr nets::Shape kShape{.channels = 3, .height = 16, .width = 16};

ImageTask task(const ImageOptions& options = {}) {
  return {.image = kShape, .classes = 2, .seed = 3, .options = options};
}

DatasetPair open_folder(const ImageTree& tree, const ImageOptions& options = {}) {
  return open_image_folder(tree.path(), task(options));
}

using Numbers = std::vector<float>;

Numbers shown(const Dataset& data, std::size_t index, std::uint64_t epoch) {
  Numbers image(data.image().elements());
  std::int32_t label = 0;
  data.show(index, epoch, image, {&label, 1});
  return image;
}

TEST(ImageFolder, HasTheClassesOfItsFolders) {
  const ImageTree tree;
  const DatasetPair data = open_folder(tree);
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(data.train->size(), 4U);
  EXPECT_EQ(data.test->size(), 2U);
  EXPECT_EQ(data.train->label(1), 0);
  EXPECT_EQ(data.train->label(2), 1);
  EXPECT_EQ(data.train->image(), kShape);
  EXPECT_EQ(count_image_classes(tree.path()), 2U);
}

TEST(ImageFolder, ReadsFoldersInFoldersAndPassesOverOtherFiles) {
  const ImageTree tree;
  tree.add("train/cat/images/3.JPEG", golden_image("usual.jpg"));
  tree.add("train/cat/readme.txt", {'x'});
  tree.add("train/cat/.hidden.jpg", {'x'});
  tree.add("train/.hidden/1.jpg", {'x'});
  tree.add("train/list.csv", {'x'});
  EXPECT_EQ(open_folder(tree).train->size(), 5U);
}

TEST(ImageFolder, DrawsAPartOfEachClassToTestOnBySeed) {
  const ImageTree tree;
  tree.remove("val");
  for (int i = 10; i < 30; ++i) {
    for (const std::string name : {"cat", "dog"}) {
      tree.add("train/" + name + '/' + std::to_string(i) + ".jpg", golden_image("usual.jpg"));
    }
  }
  const auto tested = [&](const fs::path& folder, std::uint64_t seed) {
    BrokenFiles broken{OnBroken::kStop};
    const ImageFiles files = list_images(folder, {.validation = 0.25, .seed = seed}, broken);
    EXPECT_EQ(files.test.size(), 12U);  // 22 / 4 of each class, rounded
    EXPECT_EQ(files.train.size(), 32U);
    EXPECT_EQ(std::ranges::count(files.test, 1, &ImageFile::label), 6);
    std::set<std::string> paths;
    for (const ImageFile& file : files.test) paths.insert(fs::path{file.path}.filename());
    for (const ImageFile& file : files.train) {
      EXPECT_EQ(std::ranges::count(files.test, file.path, &ImageFile::path), 0);
    }
    return paths;
  };
  EXPECT_EQ(tested(tree.path(), 3), tested(tree.path() / "train", 3));
  EXPECT_NE(tested(tree.path(), 3), tested(tree.path(), 4));
}

TEST(ImageFolder, RefusesANetworkThatHasNotItsChannels) {
  const ImageTree tree;
  ImageTask wide = task();
  wide.image.channels = 4;
  EXPECT_EQ(refusal([&] { return open_image_folder(tree.path(), wide); }),
            "images have 1 or 3 channels, but the network reads 4");
}

TEST(ImageFolder, ShowsImagesAnewInEachEpochAndTheSameAgain) {
  const ImageTree tree;
  const DatasetPair data = open_folder(tree, {.augmentation = find_augmentation("strong").value()});
  const Numbers first = shown(*data.train, 0, 0);
  EXPECT_NE(first, shown(*data.train, 0, 1));
  EXPECT_NE(first, shown(*data.train, 2, 0));  // the same file at another place
  EXPECT_EQ(
      first,
      shown(*open_folder(tree, {.augmentation = find_augmentation("strong").value()}).train, 0, 0));
  EXPECT_EQ(shown(*data.test, 0, 0), shown(*data.test, 0, 1));
}

TEST(ImageFolder, ShowsTheSameAsInAnEvaluationWithoutAugmentation) {
  const ImageTree tree;
  const DatasetPair data = open_folder(tree, {.augmentation = {}});
  EXPECT_EQ(shown(*data.train, 1, 0), shown(*data.train, 1, 7));
  EXPECT_NE(shown(*open_folder(tree).train, 1, 0), shown(*data.train, 1, 0));
}

TEST(ImageFolder, IsAnotherWhenAFileIsRenamedOrChangesItsSize) {
  const ImageTree tree;
  const auto digest = [&] { return content_sha256(open_folder(tree)); };
  const std::string before = digest();
  EXPECT_EQ(before, digest());
  fs::rename(tree.file("train/cat/1.jpg"), tree.file("train/cat/3.jpg"));
  const std::string renamed = digest();
  EXPECT_NE(before, renamed);
  tree.add("train/cat/3.jpg", golden_image("progressive.jpg"));
  EXPECT_NE(renamed, digest());
}

// Returns all that a training reads from step `first` on: twelve steps of images and labels.
std::vector<std::pmr::vector<float>> batches(const Dataset& data, std::size_t threads,
                                             std::uint64_t first = 0) {
  BatchLoader loader{data, 3, 7, first, {.threads = threads}};
  std::vector<std::pmr::vector<float>> all;
  for (std::uint64_t step = first; step < 12; ++step) {
    const Batch& batch = loader.next();
    all.push_back(batch.images);
    for (const std::int32_t label : batch.labels) all.back().push_back(static_cast<float>(label));
  }
  return all;
}

TEST(ImageFolder, GivesTheSameBitsWithAnyNumberOfThreadsAndFromAnyStep) {
  const ImageTree tree;
  tree.add("train/cat/3.jpg", {'x'});  // skipped
  const DatasetPair data = open_folder(
      tree, {.augmentation = find_augmentation("strong").value(), .on_broken = OnBroken::kSkip});
  const auto all = batches(*data.train, 1);
  EXPECT_NE(all.front(), all.back());
  EXPECT_EQ(batches(*data.train, 2), all);
  EXPECT_EQ(batches(*data.train, 8), all);
  const auto rest = batches(*data.train, 8, 5);
  EXPECT_TRUE(std::ranges::equal(rest, std::span{all}.subspan(5)));
}

// Images as bytes and the numbers that these stand for have the bits of the images as floats.

struct ShownImage {
  std::vector<float> image;
  std::int32_t label = 0;
  friend bool operator==(const ShownImage&, const ShownImage&) = default;
};

ShownImage image_of_floats(const Dataset& data, std::size_t index, std::uint64_t epoch) {
  ShownImage result{.image = std::vector<float>(data.image().elements(), 77)};
  data.show(index, epoch, result.image, {&result.label, 1});
  return result;
}

// Converts an image's bytes to numbers as a user of ByteImages does.
ShownImage image_of_bytes(const Dataset& data, std::size_t index, std::uint64_t epoch) {
  ShownImage result{.image = std::vector<float>(data.image().elements())};
  std::vector<std::uint8_t> bytes(result.image.size(), 77);
  const ByteImages& images = *data.as_bytes();
  images.show_bytes(index, epoch, bytes, {&result.label, 1});
  if (result.label >= 0) look_up(bytes, images.byte_numbers(), result.image);
  return result;
}

void expect_same_bits(const Dataset& data) {
  ASSERT_NE(data.as_bytes(), nullptr) << data.name();
  for (std::size_t i = 0; i < data.size(); ++i) {
    for (const std::uint64_t epoch : {0U, 1U}) {
      EXPECT_EQ(image_of_bytes(data, i, epoch), image_of_floats(data, i, epoch))
          << data.name() << ' ' << i;
    }
  }
}

DatasetPair open_images(const ImageTree& tree, const ImageOptions& options, std::size_t channels) {
  return open_dataset("images:" + tree.path().string(),
                      {.image = {.channels = channels, .height = 16, .width = 12},
                       .classes = 2,
                       .batch = 1,
                       .images = options});
}

TEST(ByteImages, OfAFolderHaveTheBitsOfItsFloats) {
  const ImageTree tree;
  tree.add("train/cat/3.jpg", {'x'});  // skipped
  for (const std::size_t channels : {1U, 3U}) {
    for (const char* name : {"standard", "none"}) {
      const std::optional<Augmentation> augmentation = find_augmentation(name);
      ASSERT_TRUE(augmentation) << name;
      const DatasetPair data = open_images(
          tree, {.augmentation = *augmentation, .on_broken = OnBroken::kSkip}, channels);
      ASSERT_EQ(data.train->size(), 5U);
      EXPECT_EQ(image_of_bytes(*data.train, 2, 0).label, -1);
      expect_same_bits(*data.train);
      expect_same_bits(*data.test);
      expect_same_bits(*first_samples(open_images(tree, {}, channels).train, 2));
    }
  }
}

TEST(ByteImages, AreNoneWhereColoursAreJitteredOrPartsErased) {
  const ImageTree tree;
  Augmentation erases = find_augmentation("standard").value();
  erases.erase = 0.1F;
  for (const Augmentation& augmentation : {find_augmentation("strong").value(), erases}) {
    const DatasetPair data = open_images(tree, {.augmentation = augmentation}, 3);
    EXPECT_EQ(data.train->as_bytes(), nullptr);
    expect_same_bits(*data.test);
  }
}

class StoredBytes : public testing::Test {
 protected:
  StoredBytes() {
    std::vector<std::uint8_t> batch;
    for (unsigned i = 0; i < 2; ++i) {
      batch.push_back(static_cast<std::uint8_t>(i));
      for (unsigned k = 0; k < 3072; ++k) batch.push_back(static_cast<std::uint8_t>(k * k + i));
    }
    for (const char* name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                             "data_batch_5", "test_batch"}) {
      folder_.write(std::string{name} + ".bin", batch);
    }
    for (const std::string split : {"train", "t10k"}) {
      std::vector<std::uint8_t> images{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 16, 0, 0, 0, 16};
      for (unsigned k = 0; k < 512; ++k) images.push_back(static_cast<std::uint8_t>(k * 3));
      folder_.write(split + "-images-idx3-ubyte", images);
      folder_.write(split + "-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 2, 1, 0});
    }
  }
  [[nodiscard]] DatasetPair open(const std::string& kind, const nets::Shape& image) const {
    return open_dataset(kind + ":" + folder_.path().string(),
                        {.image = image, .classes = 10, .batch = 1});
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(StoredBytes, HaveTheBitsOfTheirFloats) {
  for (const auto& [kind, image] :
       {std::pair{"cifar10", nets::Shape{3, 32, 32}}, std::pair{"idx", nets::Shape{1, 16, 16}}}) {
    const DatasetPair data = open(kind, image);
    expect_same_bits(*data.train);
    expect_same_bits(*data.test);
  }
}

TEST_F(StoredBytes, AreFloatsWhereTheyAreResized) {
  EXPECT_EQ(open("cifar10", {3, 64, 64}).train->as_bytes(), nullptr);
  EXPECT_EQ(open("idx", {1, 28, 28}).train->as_bytes(), nullptr);
}

TEST(ByteImages, AreNoneOfDrawnImages) {
  const DatasetPair data =
      open_dataset("synthetic", {.image = {3, 16, 16}, .classes = 10, .batch = 1});
  EXPECT_EQ(data.train->as_bytes(), nullptr);
}

// Seven images in batches of three: the last batch has two of padding.
TEST(ByteBatches, HaveTheNumbersAndLabelsOfFloats) {
  const ByteDataset data{{2, 3, 4}, 3, 7};
  BatchLoader of_floats{data, 3, evaluation_order(7, 3)};
  BatchLoader of_bytes{data, 3, evaluation_order(7, 3), {.has_bytes = true}};
  for (int step = 0; step < 3; ++step) {
    const Batch& floats = of_floats.next();
    const Batch& bytes = of_bytes.next();
    EXPECT_TRUE(bytes.images.empty() && floats.bytes.empty());
    EXPECT_EQ(bytes.labels, floats.labels);
    ASSERT_EQ(bytes.bytes.size(), floats.images.size());
    for (std::size_t i = 0; i < bytes.bytes.size(); ++i) {
      const float number = bytes.byte_numbers[i / 12 % 2 * kByteValues + bytes.bytes[i]];
      EXPECT_EQ(bytes.labels[i / 24] < 0 ? 0.F : number, floats.images[i]) << step << ' ' << i;
    }
  }
  // Three batches of three images of 24 numbers and a label each.
  EXPECT_EQ(of_floats.bytes(), um::Bytes{std::size_t{3 * 3 * (24 * 4 + 4)}});
  EXPECT_EQ(of_bytes.bytes(), um::Bytes{std::size_t{3 * 3 * (24 * 1 + 4)}});
}

TEST(ByteBatches, AreNotMixed) {
  const ByteDataset data{{1, 2, 2}, 3, 7};
  EXPECT_TRUE(can_load_bytes(data, {}));
  EXPECT_FALSE(can_load_bytes(data, {.mixup = 1}));
  EXPECT_FALSE(can_load_bytes(data, {.cutmix = 1}));
  EXPECT_THROW((BatchLoader{data, 3, 1, 0, {.mixing = {.mixup = 1}, .has_bytes = true}}),
               um::ContractError);
}

}  // namespace
}  // namespace spillway::test
