#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/io/data/open_dataset.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

void append_big_endian(Bytes& bytes, std::uint32_t value) {
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    bytes.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

// Images of 2x3. The bytes of image i are 10 i, 10 i + 1, ... 10 i + 5.
Bytes image_file(std::uint32_t count) {
  Bytes bytes;
  for (const std::uint32_t number : {0x803U, count, 2U, 3U}) append_big_endian(bytes, number);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t k = 0; k < 6; ++k) bytes.push_back(static_cast<std::uint8_t>(10 * i + k));
  }
  return bytes;
}

Bytes label_file(const Bytes& labels) {
  Bytes bytes;
  append_big_endian(bytes, 0x801);
  append_big_endian(bytes, static_cast<std::uint32_t>(labels.size()));
  bytes.insert(bytes.end(), labels.begin(), labels.end());
  return bytes;
}

// Three training images and two test images.
class Idx : public testing::Test {
 protected:
  Idx() {
    folder_.write("train-images-idx3-ubyte", image_file(3));
    folder_.write("train-labels-idx1-ubyte", label_file({2, 0, 1}));
    folder_.write("t10k-images-idx3-ubyte", image_file(2));
    folder_.write("t10k-labels-idx1-ubyte", label_file({1, 3}));
  }

  TemporaryFolder folder_;
};

TEST_F(Idx, ReadsImagesOfAnySize) {
  const DatasetPair pair = open_idx(folder_.path(), 4);
  EXPECT_EQ(pair.train->image(), (nets::Shape{.channels = 1, .height = 2, .width = 3}));
  EXPECT_EQ(pair.train->size(), 3U);
  EXPECT_EQ(pair.test->size(), 2U);
  std::vector<float> image(6);
  pair.train->read(2, image);
  for (std::size_t k = 0; k < 6; ++k) {
    EXPECT_FLOAT_EQ(image[k], (20.0F + static_cast<float>(k)) / 255.0F);
  }
}

TEST_F(Idx, ReadsLabelsForTheNetworksClasses) {
  const DatasetPair pair = open_idx(folder_.path(), 4);
  EXPECT_EQ(pair.train->label(0), 2);
  EXPECT_EQ(pair.test->label(1), 3);
  EXPECT_EQ(pair.train->classes(), 4U);
  EXPECT_EQ(open_idx(folder_.path(), 10).test->classes(), 10U);
}

// Packs as `gzip` does. Some packers write several members.
Bytes packed(const Bytes& content, std::size_t members = 1) {
  Bytes result;
  const std::size_t each = content.size() / members;
  for (std::size_t i = 0; i < members; ++i) {
    const auto begin = content.begin() + static_cast<std::ptrdiff_t>(i * each);
    Bytes part{begin, i + 1 == members ? content.end() : begin + static_cast<std::ptrdiff_t>(each)};
    z_stream stream{};
    deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    Bytes bytes(deflateBound(&stream, part.size()));
    stream.next_in = part.data();
    stream.avail_in = static_cast<uInt>(part.size());
    stream.next_out = bytes.data();
    stream.avail_out = static_cast<uInt>(bytes.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    bytes.resize(stream.total_out);
    deflateEnd(&stream);
    result.insert(result.end(), bytes.begin(), bytes.end());
  }
  return result;
}

TEST_F(Idx, ReadsPackedFilesAsWhatTheyWere) {
  const std::string before = content_sha256(open_idx(folder_.path(), 4));
  for (const std::size_t members : {1U, 3U}) {
    for (const std::string name : {"train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
      std::filesystem::remove(folder_.path() / name);
      folder_.write(
          name + ".gz",
          packed(name[0] == 't' && name[1] == 'r' ? image_file(3) : label_file({1, 3}), members));
    }
    const DatasetPair pair = open_idx(folder_.path(), 4);
    std::vector<float> image(6);
    pair.train->read(2, image);
    EXPECT_FLOAT_EQ(image[1], 21.0F / 255.0F);
    EXPECT_EQ(pair.test->label(1), 3);
    EXPECT_EQ(content_sha256(pair), before);
  }
}

TEST_F(Idx, NoticesAFileThatShrinksLater) {
  const DatasetPair pair = open_idx(folder_.path(), 4);
  std::filesystem::resize_file(folder_.path() / "train-images-idx3-ubyte", 20);
  std::vector<float> image(6);
  EXPECT_EQ(refusal([&] { pair.train->read(0, image); }),
            folder_.file("train-images-idx3-ubyte") +
                " ends at byte 20 and goes on no further; copy or download it again");
}

constexpr std::size_t kRecord = 3073;

// Two images with labels `first` and `first` + 1. Each byte is ten times its label, except the
// last, which is 255.
std::vector<std::uint8_t> batch_file(std::uint8_t first) {
  std::vector<std::uint8_t> bytes;
  for (const unsigned label : {first + 0U, first + 1U}) {
    bytes.push_back(static_cast<std::uint8_t>(label));
    bytes.insert(bytes.end(), kRecord - 2, static_cast<std::uint8_t>(10 * label));
    bytes.push_back(255);
  }
  return bytes;
}

class Cifar10Files : public testing::Test {
 protected:
  Cifar10Files() {
    for (std::uint8_t i = 1; i <= 5; ++i) {
      folder_.write("data_batch_" + std::to_string(i) + ".bin", batch_file(i));
    }
    folder_.write("test_batch.bin", batch_file(8));
  }

  TemporaryFolder folder_;
};

TEST_F(Cifar10Files, AreReadOneAfterTheOther) {
  const DatasetPair pair = open_cifar10(folder_.path(), 10);
  EXPECT_EQ(pair.train->size(), 10U);
  EXPECT_EQ(pair.test->size(), 2U);
  EXPECT_EQ(pair.train->label(9), 6);  // the second image of file 5
  EXPECT_EQ(pair.test->label(0), 8);
  std::vector<float> image(pair.train->image().elements());
  pair.train->read(5, image);  // the second image of file 3, of label 4
  EXPECT_FLOAT_EQ(image.front(), 40.0F / 255.0F);
  EXPECT_FLOAT_EQ(image.back(), 1.0F);
  EXPECT_EQ(open_cifar10(folder_.path(), 1000).train->classes(), 1000U);
}

}  // namespace
}  // namespace spillway::test
