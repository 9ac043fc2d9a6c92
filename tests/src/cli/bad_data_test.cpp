// Data sets that are missing, cut short or not what they should be: refused before training starts.
// What else may be wrong with them is told in tests/src/data.

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/src/cli/refused.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using Content = std::vector<std::uint8_t>;

constexpr std::uint8_t kImages = 16;  // twice the batch
constexpr std::uint8_t kSide = 8;
constexpr std::size_t kCifarImage = 3 * 32 * 32;

// Labels 0 to 9 in turn.
Content labels() {
  Content content{0, 0, 8, 1, 0, 0, 0, kImages};
  for (std::uint8_t i = 0; i < kImages; ++i) content.push_back(i % 10);
  return content;
}

Content images() {
  Content content{0, 0, 8, 3, 0, 0, 0, kImages, 0, 0, 0, kSide, 0, 0, 0, kSide};
  for (int i = 0; i < kImages * kSide * kSide; ++i) {
    content.push_back(static_cast<std::uint8_t>(i * 7));
  }
  return content;
}

class BadIdx : public testing::Test {
 protected:
  BadIdx() {
    for (const char* split : {"train", "t10k"}) {
      folder_.write(std::string{split} + "-images-idx3-ubyte", images());
      folder_.write(std::string{split} + "-labels-idx1-ubyte", labels());
    }
  }

  [[nodiscard]] Arguments training() const {
    return small_training({"--data", "idx:" + folder_.path().string()});
  }

  TemporaryFolder folder_;
};

TEST_F(BadIdx, IsNotWhatTheseTestsStartFrom) { succeed(training()); }

TEST_F(BadIdx, FileThatIsMissingIsNamed) {
  for (const char* name : {"train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    std::filesystem::rename(folder_.file(name), folder_.file("away"));
    expect_refused(1, training(), {"there is no file", folder_.file(name), "put"});
    std::filesystem::rename(folder_.file("away"), folder_.file(name));
  }
}

TEST_F(BadIdx, FolderThatIsMissingIsNamed) {
  expect_refused(1, small_training("--data idx:/no/such/folder"), {"/no/such/folder"});
}

TEST_F(BadIdx, FileCutShortIsNoticedBeforeTraining) {
  Content content = images();
  content.pop_back();
  folder_.write("t10k-images-idx3-ubyte", content);
  expect_refused(
      1, training(),
      {"t10k-images-idx3-ubyte has 1023 bytes after its header", "promises 1024", "again"});
}

TEST_F(BadIdx, LabelTheNetworkHasNoClassForIsNoticed) {
  Content high = labels();
  high.back() = 200;
  folder_.write("t10k-labels-idx1-ubyte", high);
  expect_refused(1, training(), {"t10k-labels-idx1-ubyte go up to 200", "--classes 201"});
}

TEST_F(BadIdx, FewerImagesThanABatchAreNoticed) {
  const Arguments large = {"train --net lenet --batch 17 --data", "idx:" + folder_.path().string()};
  expect_refused(1, large, {"16 images", "batch of 17", "smaller --batch"});
}

class BadCifar10 : public testing::Test {
 protected:
  BadCifar10() {
    for (const char* name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                             "data_batch_5", "test_batch"}) {
      folder_.write(std::string{name} + ".bin", records({0, 9}));
    }
  }

  static Content records(std::initializer_list<std::uint8_t> labels) {
    Content content;
    for (const std::uint8_t label : labels) {
      content.push_back(label);
      content.insert(content.end(), kCifarImage, label);
    }
    return content;
  }
  [[nodiscard]] Arguments training() const {
    return {"train --net resnet18 --batch 2 --image-size 32 --steps 1 --data",
            "cifar10:" + folder_.path().string()};
  }

  TemporaryFolder folder_;
};

TEST_F(BadCifar10, IsNotWhatTheseTestsStartFrom) { succeed(training()); }

TEST_F(BadCifar10, LabelOutOfRangeIsNoticed) {
  folder_.write("data_batch_3.bin", records({1, 10}));
  expect_refused(1, training(), {"image 1 of", "data_batch_3.bin", "label 10", "0 to 9"});
}

TEST_F(BadCifar10, NeedsTenClasses) {
  expect_refused(1, {training(), "--classes 5"}, {"10 classes", "--classes 10"});
}

}  // namespace
}  // namespace spillway::test
