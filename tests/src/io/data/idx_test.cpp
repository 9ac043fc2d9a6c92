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
Bytes image_file(std::uint32_t count, std::uint32_t magic = 0x803) {
  Bytes bytes;
  for (const std::uint32_t number : {magic, count, 2U, 3U}) append_big_endian(bytes, number);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t k = 0; k < 6; ++k) bytes.push_back(static_cast<std::uint8_t>(10 * i + k));
  }
  return bytes;
}

Bytes label_file(const Bytes& labels, std::uint32_t magic = 0x801) {
  Bytes bytes;
  append_big_endian(bytes, magic);
  append_big_endian(bytes, static_cast<std::uint32_t>(labels.size()));
  bytes.insert(bytes.end(), labels.begin(), labels.end());
  return bytes;
}

// Three training images and two test images; tests damage some files.
class Idx : public testing::Test {
 protected:
  Idx() { write_all(); }

  void write_all() const {
    folder_.write("train-images-idx3-ubyte", image_file(3));
    folder_.write("train-labels-idx1-ubyte", label_file({2, 0, 1}));
    folder_.write("t10k-images-idx3-ubyte", image_file(2));
    folder_.write("t10k-labels-idx1-ubyte", label_file({1, 3}));
  }

  [[nodiscard]] std::string refusal_with(std::size_t classes) const {
    return refusal([&] { return open_idx(folder_.path(), classes); });
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

TEST_F(Idx, SaysWhereToPutAMissingFile) {
  std::filesystem::remove(folder_.path() / "t10k-labels-idx1-ubyte");
  EXPECT_EQ(refusal_with(10),
            "there is no file " + folder_.file("t10k-labels-idx1-ubyte") +
                "; put train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte "
                "and t10k-labels-idx1-ubyte, or what gzip makes of these, into " +
                folder_.path().string());
}

TEST_F(Idx, RefusesAFileThatIsNone) {
  const std::string images = "train-images-idx3-ubyte";
  Bytes cut = image_file(3);
  cut.pop_back();
  Bytes longer = image_file(3);
  longer.push_back(0);
  Bytes huge;  // 2^31 * 2^31 * 2^4 = 2^66, which overflows to 0 in 64 bits
  for (const std::uint32_t number : {0x803U, 1U << 31, 1U << 31, 16U}) {
    append_big_endian(huge, number);
  }
  struct Spoilt {
    std::string name;
    Bytes content;
    std::string cause;
  };
  for (const auto& [name, content, cause] : std::vector<Spoilt>{
           {images, image_file(3, 0x12345678), "starts with 0x12345678, not with 0x00000803"},
           {images, label_file({2, 0, 1, 1, 1, 1, 1, 1, 1, 1}), "starts with 0x00000801, not with"},
           {images, image_file(3, 0x1F8B0800), "is damaged: gzip cannot unpack it"},
           {images, cut, "has 17 bytes after its header, which promises 18"},
           {images, longer, "has 19 bytes after its header, which promises 18"},
           {"t10k-images-idx3-ubyte",
            {0, 0, 8, 3, 0},
            "has 5 bytes, but its header alone needs 16"},
           {images, {}, "has 0 bytes, but its header alone needs 16"},
           {images, image_file(0), "is empty: one of its dimensions is 0"},
           {images, huge, "has dimensions that no file can have"},
           {"train-labels-idx1-ubyte", label_file({0, 1, 2, 0}),
            "holds 4 labels, but " + folder_.file(images) + " holds 3 images"}}) {
    write_all();
    folder_.write(name, content);
    const std::string sentence = refusal_with(10);
    EXPECT_TRUE(sentence.starts_with(folder_.file(name) + " " + cause)) << sentence;
  }
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

TEST_F(Idx, RefusesPackedFilesThatAreDamaged) {
  const std::string name = "train-images-idx3-ubyte";
  std::filesystem::remove(folder_.path() / name);
  Bytes cut = packed(image_file(3));
  cut.resize(cut.size() - 9);
  folder_.write(name + ".gz", cut);
  EXPECT_EQ(refusal_with(4), folder_.file(name + ".gz") + " is cut short; copy it again");
  Bytes spoilt = packed(image_file(3));
  spoilt[spoilt.size() - 6] ^= 1;  // in the check sum
  folder_.write(name + ".gz", spoilt);
  EXPECT_EQ(refusal_with(4), folder_.file(name + ".gz") + " is damaged: gzip cannot unpack it");
}

TEST_F(Idx, RefusesLabelsTheNetworkHasNoClassFor) {
  EXPECT_EQ(refusal_with(3), "the labels in " + folder_.file("t10k-labels-idx1-ubyte") +
                                 " go up to 3, but the network has 3 classes; use --classes 4 or "
                                 "more");
}

TEST_F(Idx, RefusesAFolderInPlaceOfAFile) {
  std::filesystem::remove(folder_.path() / "train-images-idx3-ubyte");
  std::filesystem::create_directory(folder_.path() / "train-images-idx3-ubyte");
  EXPECT_EQ(refusal_with(10),
            "cannot read " + folder_.file("train-images-idx3-ubyte") + ": it is no ordinary file");
}

// NAME_MAX is 255.
TEST_F(Idx, SaysThatAPathIsTooLong) {
  const std::filesystem::path path = folder_.path() / std::string(300, 'x');
  EXPECT_EQ(refusal([&] { return open_idx(path, 10); }),
            um::shortened("cannot read " + (path / "train-images-idx3-ubyte").string() +
                          ": File name too long"));
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

  [[nodiscard]] std::string refusal_with(std::size_t classes) const {
    return refusal([&] { return open_cifar10(folder_.path(), classes); });
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
}

TEST_F(Cifar10Files, SayWhereToPutAMissingOne) {
  std::filesystem::remove(folder_.path() / "data_batch_3.bin");
  EXPECT_EQ(refusal_with(10),
            "there is no file " + folder_.file("data_batch_3.bin") +
                "; put data_batch_1.bin to data_batch_5.bin and test_batch.bin of CIFAR-10's "
                "binary version into " +
                folder_.path().string());
}

// NAME_MAX is 255.
TEST_F(Cifar10Files, SayThatTheirPathIsTooLong) {
  const std::filesystem::path path = folder_.path() / std::string(300, 'x');
  EXPECT_EQ(refusal([&] { return open_cifar10(path, 10); }),
            um::shortened("cannot read " + (path / "data_batch_1.bin").string() +
                          ": File name too long"));
}

TEST_F(Cifar10Files, AreRefusedWhenTruncatedOrEmpty) {
  for (const std::size_t size : {2 * kRecord - 1, std::size_t{0}}) {
    std::filesystem::resize_file(folder_.path() / "test_batch.bin", size);
    EXPECT_EQ(refusal_with(10), folder_.file("test_batch.bin") + " has " + std::to_string(size) +
                                    " bytes, which is no multiple of the 3073 of an image; copy or "
                                    "download it again");
  }
}

TEST_F(Cifar10Files, AreRefusedWithALabelOutOfRange) {
  folder_.write("data_batch_2.bin", batch_file(9));  // labels 9 and 10
  EXPECT_EQ(refusal_with(10), "image 1 of " + folder_.file("data_batch_2.bin") +
                                  " has the label 10, but CIFAR-10's go from 0 to 9; copy or "
                                  "download the file again");
}

TEST_F(Cifar10Files, NeedTenClasses) {
  EXPECT_EQ(refusal_with(9),
            "CIFAR-10 has 10 classes, but the network has 9; use --classes 10 or more");
  EXPECT_EQ(open_cifar10(folder_.path(), 1000).train->classes(), 1000U);
}

}  // namespace
}  // namespace spillway::test
