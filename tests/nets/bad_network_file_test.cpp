// Network files that are none: one sentence each, with file, line and layer.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "nets/text/network_declaration.h"
#include "nets/text/network_file.h"
#include "tests/nets/refused_network.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace spillway::nets {
namespace {

using test::expect_refusals;
using test::refusal;
using test::refused;
using test::refused_layer;
using test::TemporaryFolder;

TEST(BadNetworkFile, IsNotWhatTheseTestsStartFrom) {
  EXPECT_EQ(refused_layer("conv convolution channels=4"), "accepted");
}

TEST(BadNetworkFile, WithAHeaderThatIsNone) {
  expect_refusals(
      {
          {"", " is empty", "a line 'spillway-network 1' is missing"},
          {"# nothing\n\n", " ends too early", "a line 'spillway-network 1' is missing"},
          {"name toy\n", ":1: ", "'spillway-network 1', this one with 'name toy'"},
          {R"({"layers": []})", ":1: ", R"('spillway-network 1', this one with '{"layers": []}')"},
          {"\nspillway-network 2\nname toy\n", ":2: ", "reads version 1"},
          {"spillway-network 1\ninput 3x8x8\n", ":2: ", "'name NAME', not 'input 3x8x8'"},
          {"spillway-network 1\nname toy\nclasses 5\n", ":3: ", "WIDTH', not 'classes 5'"},
          {"spillway-network 1\nname toy\ninput 3x8x8\nc pool\n", ":4: ", "NUMBER', not 'c pool'"},
          {"spillway-network 1\nname toy\n", " ends too early", "WIDTH' is missing"},
          {"spillway-network 1\nname a b\n", ":2: ", "one word as a name"},
          {"spillway-network 1\nname a\"b\n", ":2: 'a\"b' is no name", "at most 200"},
      },
      refused);
}

TEST(BadNetworkFile, WithAnInputThatIsNoShape) {
  for (const std::string shape : {"", "3", "3x8", "3x8x8x8", "3x0x8", "-3x8x8", "3x8x99999",
                                  "axbxc", "3 x 8 x 8", "3x8x8 1", "3x8x18446744073709551616"}) {
    expect_refusals({{"spillway-network 1\nname toy\ninput " + shape + "\nclasses 5\n",
                      ":3: an input of '" + shape + "' is no CHANNELSxHEIGHTxWIDTH", "3x224x224"}},
                    refused);
  }
}

TEST(BadNetworkFile, WithAnImpossibleNumberOfClasses) {
  for (const std::string classes : {"", "1", "0", "-2", "ten", "5 6", "1048577"}) {
    expect_refusals({{"spillway-network 1\nname toy\ninput 3x8x8\nclasses " + classes + "\n",
                      ":4: '" + classes + "' is no number of classes", "from 2 to 1048576"}},
                    refused);
  }
}

TEST(BadNetworkFile, WithALineThatIsNone) {
  expect_refusals({
      {"x=1 relu", ":5: 'x=1' is no name", "letters, digits and _-.:,/+"},
      {std::string(201, 'x') + " relu", ":5: '" + std::string(60, 'x') + "...'", "is no name"},
      {std::string{"a re\0lu", 7}, ":5: ", "the byte 0x00"},
      {"a relu # \x1b[31m", ":5: ", "the byte 0x1b"},
      {"\xc3\xa4 relu", ":5: ", "not ASCII, which only comments may"},
  });
}

TEST(BadNetworkFile, WithALineThatIsTooLong) {
  const std::string blanks(TextLines::kLongestLine - 6, ' ');
  EXPECT_EQ(refused_layer("a" + blanks + " relu"), "accepted");
  expect_refusals({{"a" + blanks + "  relu", ":5: ", "longer than the 65536 bytes"}});
}

// A stream of so many bytes that counts how many of them were read.
class Endless : public std::streambuf {
 public:
  Endless(std::string part, std::size_t size) : part_{std::move(part)}, left_{size} {}
  [[nodiscard]] std::size_t read() const { return read_; }

 protected:
  int_type underflow() override {
    if (left_ < part_.size()) return traits_type::eof();
    left_ -= part_.size();
    read_ += part_.size();
    setg(part_.data(), part_.data(), part_.data() + part_.size());
    return traits_type::to_int_type(part_[0]);
  }

 private:
  std::string part_;
  std::size_t left_;
  std::size_t read_ = 0;
};

constexpr std::size_t kNoise = 100U << 20U;

// What 100 MB of `part` are refused with, and how many bytes were read before.
std::pair<std::string, std::size_t> refused_noise(const std::string& part) {
  Endless noise{part, kNoise};
  std::istream stream{&noise};
  std::string sentence = refusal([&] { return read_network(stream, "noise.net").name; });
  return {std::move(sentence), noise.read()};
}

TEST(BadNetworkFile, OfAHundredMegabytesIsNotReadToItsEnd) {
  std::string bytes(4096, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + 3);
  const auto [noise, noise_bytes] = refused_noise(bytes);
  EXPECT_TRUE(noise.starts_with("noise.net:1: this line holds the byte 0x")) << noise;
  EXPECT_LE(noise_bytes, 4096U);

  const auto [letters, letter_bytes] = refused_noise(std::string(4096, 'x'));
  EXPECT_EQ(letters, "noise.net:1: this line is longer than the 65536 bytes that a line may have");
  EXPECT_LE(letter_bytes, TextLines::kLongestLine + 8192);

  const auto [lines, line_bytes] = refused_noise(std::string(4095, '\n') + "#");
  EXPECT_EQ(lines, "noise.net is larger than the 16 MiB that a network file may be");
  EXPECT_LE(line_bytes, TextLines::kLargestFile + 4096);
}

TEST(BadNetworkFile, ThatIsNotThereOrCannotBeRead) {
  const TemporaryFolder folder;
  EXPECT_EQ(refusal([&] { return open_network(folder.file("none.net")).name; }),
            "cannot read " + folder.file("none.net") + ": No such file or directory");
  EXPECT_EQ(refusal([&] { return open_network(folder.path()).name; }),
            "cannot read " + folder.path().string() + ": it is a folder, not a network file");
  EXPECT_EQ(refusal([&] { return open_network("/proc/self/mem").name; }),
            "cannot read /proc/self/mem: Input/output error");
}

}  // namespace
}  // namespace spillway::nets
