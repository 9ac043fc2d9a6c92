#include "src/io/data/image_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "src/io/data/batch_loader.h"
#include "tests/refusal.h"
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

}  // namespace
}  // namespace spillway::test
