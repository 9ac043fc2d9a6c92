// Invalid network files and invalid layers: each gives one sentence with file, line and layer.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "nets/shape.h"
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

// A stream of `size` bytes that counts the bytes read.
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

// Returns the error for 100 MB of `part`, and the bytes read before it.
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

using test::kEnd;
using test::kHeader;
using test::refused_layers;

TEST(BadLayerLine, IsToldWhatItCannotRead) {
  expect_refusals({
      {"a relu b\nb relu a", ":5: layer a ", "reads b of line 6"},
      {"a add image a", ":5: layer a ", "reads itself"},
      {"a add image fc", ":5: layer a ", "reads fc of line 6"},
      {"a relu nothing", ":5: layer a reads 'nothing'", "no layer of that name"},
      // A parameter must be one word.
      {"conv convolution channels = 4", ":5: layer conv reads 'channels'", "no layer of that name"},
      {"a add", ":5: layer a (add)", "reads 2 layers, not 1"},
      {"a add image image image", ":5: layer a (add)", "reads 2 layers, not 3"},
      {"a concat image", ":5: layer a (concat)", "reads 2 or more layers, not 1"},
      {"a relu image image", ":5: layer a (relu)", "reads 1 layer, not 2"},
      {"a relu\nb relu\na relu", ":7: layer a ", "the name of the layer on line 5"},
      {"image relu", ":5: layer image ", "the name of the network's input"},
      {"a relu\nb relu image", ":5: layer a ", "read by no other"},
      {"early softmax-cross-entropy", ":5: layer early is a loss", "which layer it reads"},
  });
}

TEST(BadLayerLine, AtTheEndIsNoLoss) {
  const std::string loss = "\nloss softmax-cross-entropy\n";
  expect_refusals({{"", " has no layers", "must be the loss"},
                   {"fc linear features=classes\n", ":5: layer fc is the last one", "a loss"},
                   {"fc linear features=4" + loss, ":6: layer loss tells 5 classes", "4 numbers"}},
                  refused_layers);
}

TEST(BadLayerLine, IsToldWhatALayerTakes) {
  expect_refusals({
      {"a swish", ":5: layer a is a 'swish'", "there are convolution, transposed-convolution, "},
      {"a", ":5: layer a says nothing but its name", "what kind"},
      {"a linear features=4 kernel=3", ":5: layer a (linear)",
       "no parameter 'kernel'; it takes features and bias"},
      {"a dropout p=0.5", ":5: layer a (dropout)", "no parameter 'p'; it takes probability"},
      {"a relu slope=0.1", ":5: layer a (relu)", "no parameter 'slope'; it takes none"},
      {"a linear features=4 features=4", ":5: layer a (linear)", "says 'features' twice"},
      {"a convolution kernel=3", ":5: layer a (convolution)", "needs channels=NUMBER"},
      {"a linear", ":5: layer a (linear)", "needs features=NUMBER"},
      {"a pool kind=mean", ":5: layer a (pool) says kind=mean", "max or average"},
      {"a linear features=4 bias=true", ":5: layer a (linear) says bias=true", "yes or no"},
  });
}

TEST(BadLayerLine, IsToldWhatANumberIs) {
  for (const std::string number : {"", "-4", "4.0", "four", "+4", "0x10", "1e3", "4,"}) {
    expect_refusals(
        {{"a linear features=" + number, ":5: layer a (linear) says features=" + number + "; ",
          "a whole number from 0 to 1048576 or the word classes"}});
  }
  for (const std::string side : {"", "-1", "3x", "x3", "3x3x3", "16385", "3*3", "classes"}) {
    expect_refusals({{"a convolution channels=4 kernel=" + side,
                      ":5: layer a (convolution) says kernel=" + side + "; ",
                      "a whole number from 0 to 16384, or two of them, height and width"}});
  }
  for (const std::string rate : {"", "half", "nan", "inf", "1e99", "0.5f", "1/2"}) {
    expect_refusals({{"a dropout probability=" + rate,
                      ":5: layer a (dropout) says probability=" + rate + "; ", "a number"}});
  }
}

// Mistakes that the builder refuses, too; here with the line.
TEST(BadLayerLine, IsToldWhatALayerCannotDo) {
  expect_refusals({
      {"a convolution channels=0", ":5: layer a (convolution 1x1, 0 channels)", "one channel"},
      {"a pool stride=0x1", ":5: layer a (max pool 2x2, stride 0x1)", "a stride of at least 1"},
      {"a batch-norm epsilon=0", ":5: layer a (batch norm)", "an epsilon above 0"},
      {"a batch-norm momentum=1.5", ":5: layer a (batch norm)", "a momentum from 0 to 1"},
      {"a convolution channels=4\nb add a image", ":6: layer b (add)", "reads 4x8x8 and 3x8x8"},
      {"a convolution channels=4 kernel=9", ":5: layer a (convolution 9x9, 4 channels)",
       "does not fit what it reads, 3x8x8; use a larger --image-size"},
  });
}

TEST(BadLayerLine, ThatCannotHaveTheClassesAskedFor) {
  std::istringstream text{kHeader + "fc linear features=5\nloss softmax-cross-entropy\n"};
  const CatalogueEntry entry = read_network(text, "toy.net");
  EXPECT_EQ(refusal([&] { return entry.build(entry.image, 5); }), "accepted");
  const std::string sentence = refusal([&] { return entry.build(entry.image, 7); });
  EXPECT_TRUE(sentence.starts_with("toy.net:6: layer loss tells 7 classes apart")) << sentence;
}

TEST(BadLayerLine, WithNothingToTrain) {
  expect_refusals({{"spillway-network 1\nname toy\ninput 5x1x1\nclasses 5\nloss "
                    "softmax-cross-entropy\n",
                    " has no layer with parameters", "a linear layer"}},
                  refused);
}

// 2^20 channels of more than 2^10 x 2^10 elements exceed 2^40.
TEST(BadLayerLine, WithLayersTooLargeToCount) {
  expect_refusals({{"a convolution channels=1048576 kernel=1 padding=16384",
                    ":5: layer a makes 1048576x32776x32776", "more than 2^40 numbers"}});
}

// Each layer adds 32,768 to both sides.
TEST(BadLayerLine, WithShapesThatNeedMoreThan64Bits) {
  std::string layers;
  for (int i = 0; i < 40; ++i) {
    layers += "c" + std::to_string(i) + " convolution channels=1 padding=16384\n";
  }
  expect_refusals({{layers + "c convolution channels=1048576", "", "more than 2^40 numbers"}});
}

// 2^20 * 2^20 * 2^13 * 2^13 weights exceed 64 bits.
TEST(BadLayerLine, WithMoreParametersThan64BitsCount) {
  expect_refusals(
      {{"wide linear features=1048576\n"
        "large convolution channels=1048576 kernel=8193 padding=4096\n"
        "mean global-average-pool",
        "", "more than 2^40 parameters"}});
}

TEST(BadLayerLine, WithTooManyLayers) {
  std::string layers;
  for (std::size_t i = 0; i < kMaxLayers; ++i) layers += "r" + std::to_string(i) + " relu\n";
  expect_refusals({{layers + kEnd, ":100005: ", "at most 100000 layers"}}, refused_layers);
}

}  // namespace
}  // namespace spillway::nets
