#include "src/io/data/cifar10.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

constexpr std::size_t kRecord = 3073;

// Two images of labels `first` and `first` + 1; every byte of an image is ten times its label, but
// the last, which is 255.
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
