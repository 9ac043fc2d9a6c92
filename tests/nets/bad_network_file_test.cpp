// Network files that are none: one sentence each, with file, line and layer.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "nets/network_declaration.h"
#include "nets/network_file.h"
#include "tests/refusal.h"
#include "tests/src/data/temporary_folder.h"

namespace spillway::nets {
namespace {

using test::refusal;
using test::TemporaryFolder;

const std::string kHeader = "spillway-network 1\nname toy\ninput 3x8x8\nclasses 5\n";
const std::string kEnd = "fc linear features=classes\nloss softmax-cross-entropy\n";

// Of the text, read and built with its own image and classes.
std::string refused(const std::string& text) {
  return refusal([&] {
    std::istringstream stream{text};
    const CatalogueEntry entry = read_network(stream, "toy.net");
    return entry.build(entry.image, entry.classes);
  });
}

// Of layers behind a header of four lines.
std::string refused_layers(const std::string& layers) { return refused(kHeader + layers); }

// Of one layer on line 5, before others that are right.
std::string refused_layer(const std::string& layer) { return refused_layers(layer + "\n" + kEnd); }

TEST(BadNetworkFile, IsNotWhatTheseTestsStartFrom) {
  EXPECT_EQ(refused_layer("conv convolution channels=4"), "accepted");
}

// ---- header

TEST(BadNetworkFile, ThatIsEmpty) {
  const std::string sentence = "toy.net is empty; a line 'spillway-network 1' is missing";
  EXPECT_EQ(refused(""), sentence);
  EXPECT_EQ(refused("# nothing\n\n"),
            "toy.net ends too early; a line 'spillway-network 1' is missing");
}

TEST(BadNetworkFile, WithoutItsFirstLine) {
  EXPECT_EQ(refused("name toy\n"),
            "toy.net:1: a network file begins with the line 'spillway-network 1', this one with "
            "'name toy'");
  EXPECT_EQ(refused("{\"layers\": []}"),
            "toy.net:1: a network file begins with the line 'spillway-network 1', this one with "
            "'{\"layers\": []}'");
}

TEST(BadNetworkFile, OfAnotherVersion) {
  EXPECT_EQ(refused("\nspillway-network 2\nname toy\n"),
            "toy.net:2: this is version '2' of network files; this program reads version 1");
}

TEST(BadNetworkFile, WithoutALineOfItsHeader) {
  EXPECT_EQ(refused("spillway-network 1\ninput 3x8x8\n"),
            "toy.net:2: here belongs the line 'name NAME', not 'input 3x8x8'");
  EXPECT_EQ(refused("spillway-network 1\nname toy\nclasses 5\n"),
            "toy.net:3: here belongs the line 'input CHANNELSxHEIGHTxWIDTH', not 'classes 5'");
  EXPECT_EQ(refused("spillway-network 1\nname toy\ninput 3x8x8\nconv convolution channels=4\n"),
            "toy.net:4: here belongs the line 'classes NUMBER', not 'conv convolution channels=4'");
  EXPECT_EQ(refused("spillway-network 1\nname toy\n"),
            "toy.net ends too early; a line 'input CHANNELSxHEIGHTxWIDTH' is missing");
}

TEST(BadNetworkFile, WithAnInputThatIsNoShape) {
  for (const std::string shape : {"", "3", "3x8", "3x8x8x8", "3x0x8", "-3x8x8", "3x8x99999",
                                  "axbxc", "3 x 8 x 8", "3x8x8 1", "3x8x18446744073709551616"}) {
    EXPECT_EQ(refused("spillway-network 1\nname toy\ninput " + shape + "\nclasses 5\n"),
              "toy.net:3: an input of '" + shape +
                  "' is no CHANNELSxHEIGHTxWIDTH, each from 1 to 16384, as 3x224x224 is");
  }
}

TEST(BadNetworkFile, WithAnImpossibleNumberOfClasses) {
  for (const std::string classes : {"", "1", "0", "-2", "ten", "5 6", "1048577"}) {
    EXPECT_EQ(refused("spillway-network 1\nname toy\ninput 3x8x8\nclasses " + classes + "\n"),
              "toy.net:4: '" + classes +
                  "' is no number of classes; it must be a whole number from 2 to 1048576");
  }
}

TEST(BadNetworkFile, WithNamesThatAreNone) {
  const std::string what =
      " is no name; names have letters, digits and _-.:,/+, and at most 200 of "
      "them";
  EXPECT_EQ(refused("spillway-network 1\nname a\"b\n"), "toy.net:2: 'a\"b'" + what);
  EXPECT_EQ(refused("spillway-network 1\nname a b\n"),
            "toy.net:2: a network has one word as a name");
  EXPECT_EQ(refused_layer("x=1 relu"), "toy.net:5: 'x=1'" + what);
  EXPECT_EQ(refused_layer(std::string(201, 'x') + " relu"),
            "toy.net:5: '" + std::string(60, 'x') + "...'" + what);
}

// ---- which layers read which

TEST(BadNetworkFile, WithACycle) {
  EXPECT_EQ(refused_layers("a relu b\nb relu a\n" + kEnd),
            "toy.net:5: layer a reads b of line 6, but a layer can read only layers before it");
  EXPECT_EQ(refused_layer("a add image a"),
            "toy.net:5: layer a reads itself, but a layer can read only layers before it");
}

TEST(BadNetworkFile, ThatReadsALayerBeforeItIsThere) {
  EXPECT_EQ(refused_layer("a add image fc"),
            "toy.net:5: layer a reads fc of line 6, but a layer can read only layers before it");
}

TEST(BadNetworkFile, WithAnInputThatIsMissing) {
  EXPECT_EQ(refused_layer("a relu nothing"),
            "toy.net:5: layer a reads 'nothing', but there is no layer of that name");
  // What is meant as a parameter is one word.
  EXPECT_EQ(refused_layer("conv convolution channels = 4"),
            "toy.net:5: layer conv reads 'channels', but there is no layer of that name");
}

TEST(BadNetworkFile, WithTheWrongNumberOfInputs) {
  EXPECT_EQ(refused_layer("a add"),
            "toy.net:5: layer a (add) reads 2 layers, not 1; their names belong behind 'add'");
  EXPECT_EQ(refused_layer("a add image image image"),
            "toy.net:5: layer a (add) reads 2 layers, not 3; their names belong behind 'add'");
  EXPECT_EQ(refused_layer("a concat image"),
            "toy.net:5: layer a (concat) reads 2 or more layers, not 1; their names belong behind "
            "'concat'");
  EXPECT_EQ(refused_layer("a relu image image"),
            "toy.net:5: layer a (relu) reads 1 layer, not 2; their names belong behind 'relu'");
}

TEST(BadNetworkFile, WithTwoLayersOfOneName) {
  EXPECT_EQ(refused_layers("a relu\nb relu\na relu\n" + kEnd),
            "toy.net:7: layer a has the name of the layer on line 5; give it one of its own");
  EXPECT_EQ(refused_layer("image relu"),
            "toy.net:5: layer image has the name of the network's input; give it one of its own");
}

TEST(BadNetworkFile, WithALayerThatNobodyReads) {
  EXPECT_EQ(refused_layers("a relu\nb relu image\n" + kEnd),
            "toy.net:5: layer a is read by no other; remove it, or name it behind the kind of the "
            "layer that shall read it");
}

TEST(BadNetworkFile, WithoutALossAtItsEnd) {
  EXPECT_EQ(refused_layers(""),
            "toy.net has no layers; the last one must be the loss, such as 'loss "
            "softmax-cross-entropy'");
  EXPECT_EQ(refused_layers("fc linear features=classes\n"),
            "toy.net:5: layer fc is the last one; there a loss belongs, such as 'loss "
            "softmax-cross-entropy'");
}

TEST(BadNetworkFile, WithALossBeforeItsEnd) {
  EXPECT_EQ(refused_layers("early softmax-cross-entropy\n" + kEnd),
            "toy.net:5: layer early is a loss, but not the last layer; nothing may follow it");
}

// ---- layers

TEST(BadNetworkFile, WithALayerThatThereIsNot) {
  EXPECT_TRUE(
      refused_layer("a gelu").starts_with("toy.net:5: layer a is a 'gelu', which is no layer; "
                                          "there are convolution, batch-norm, relu, "))
      << refused_layer("a gelu");
  EXPECT_EQ(refused_layer("a"),
            "toy.net:5: layer a says nothing but its name; what kind of layer it is belongs behind "
            "that");
}

TEST(BadNetworkFile, WithAParameterThatTheLayerDoesNotTake) {
  EXPECT_EQ(refused_layer("a linear features=4 kernel=3"),
            "toy.net:5: layer a (linear) has no parameter 'kernel'; it takes features and bias");
  EXPECT_EQ(refused_layer("a dropout p=0.5"),
            "toy.net:5: layer a (dropout) has no parameter 'p'; it takes probability");
  EXPECT_EQ(refused_layer("a relu slope=0.1"),
            "toy.net:5: layer a (relu) has no parameter 'slope'; it takes none");
}

TEST(BadNetworkFile, ThatSaysAParameterTwice) {
  EXPECT_EQ(refused_layer("a linear features=4 features=4"),
            "toy.net:5: layer a (linear) says 'features' twice");
}

TEST(BadNetworkFile, WithoutAParameterThatHasNoDefault) {
  EXPECT_EQ(refused_layer("a convolution kernel=3"),
            "toy.net:5: layer a (convolution) needs channels=NUMBER");
  EXPECT_EQ(refused_layer("a linear"), "toy.net:5: layer a (linear) needs features=NUMBER");
}

TEST(BadNetworkFile, WithANumberThatIsNone) {
  for (const std::string number : {"", "-4", "4.0", "four", "+4", "0x10", "1e3", "4,"}) {
    EXPECT_EQ(refused_layer("a linear features=" + number),
              "toy.net:5: layer a (linear) says features=" + number +
                  "; there belongs a whole number from 0 to 1048576 or the word classes");
  }
}

TEST(BadNetworkFile, WithASideThatIsNone) {
  for (const std::string side : {"", "-1", "3x", "x3", "3x3x3", "16385", "3*3", "classes"}) {
    EXPECT_EQ(refused_layer("a convolution channels=4 kernel=" + side),
              "toy.net:5: layer a (convolution) says kernel=" + side +
                  "; there belongs a whole number from 0 to 16384, or two of them, height and "
                  "width, as 1x7");
  }
}

TEST(BadNetworkFile, WithARateThatIsNone) {
  for (const std::string rate : {"", "half", "nan", "inf", "1e99", "0.5f", "1/2"}) {
    EXPECT_EQ(refused_layer("a dropout probability=" + rate),
              "toy.net:5: layer a (dropout) says probability=" + rate + "; there belongs a number");
  }
}

TEST(BadNetworkFile, WithAWordThatIsNoneOfThoseThereAre) {
  EXPECT_EQ(refused_layer("a pool kind=mean"),
            "toy.net:5: layer a (pool) says kind=mean; there belongs max or average");
  EXPECT_EQ(refused_layer("a linear features=4 bias=true"),
            "toy.net:5: layer a (linear) says bias=true; there belongs yes or no");
}

TEST(BadNetworkFile, WithAZeroWhereThereMustBeSomething) {
  EXPECT_EQ(refused_layer("a convolution channels=0"),
            "toy.net:5: layer a (convolution 1x1, 0 channels) needs at least one channel");
  EXPECT_EQ(refused_layer("a linear features=0"),
            "toy.net:5: layer a (linear, 0 features) needs at least one feature");
  EXPECT_EQ(refused_layer("a pool stride=0x1"),
            "toy.net:5: layer a (max pool 2x2, stride 0x1) needs a kernel and a stride of at least "
            "1");
}

TEST(BadNetworkFile, WithANumberThatALayerCannotUse) {
  EXPECT_EQ(refused_layer("a dropout probability=1"),
            "toy.net:5: layer a (dropout) needs a probability of at least 0 and less than 1");
  EXPECT_EQ(refused_layer("a batch-norm epsilon=0"),
            "toy.net:5: layer a (batch norm) needs an epsilon above 0 and a momentum from 0 to 1");
  EXPECT_EQ(refused_layer("a batch-norm momentum=1.5"),
            "toy.net:5: layer a (batch norm) needs an epsilon above 0 and a momentum from 0 to 1");
  EXPECT_EQ(refused_layer("a local-response-norm size=4"),
            "toy.net:5: layer a (local response norm over 4 channels) needs an odd number of "
            "channels, its own in the middle");
}

// ---- shapes

TEST(BadNetworkFile, WithShapesThatDoNotMatch) {
  EXPECT_EQ(refused_layers("a convolution channels=4\nb add a image\n" + kEnd),
            "toy.net:6: layer b (add) adds only equal shapes and reads 4x8x8 and 3x8x8");
  EXPECT_EQ(refused_layers("a pool\nb concat a image\n" + kEnd),
            "toy.net:6: layer b (concat) joins only images of one height and width and reads 3x4x4 "
            "and 3x8x8");
  EXPECT_EQ(refused_layers("a convolution channels=classes\nloss softmax-cross-entropy\n"),
            "toy.net:6: layer loss (softmax cross-entropy) needs one number for each class and "
            "reads 5x8x8; put a linear layer before it");
}

TEST(BadNetworkFile, WithAWindowLargerThanTheImage) {
  EXPECT_EQ(refused_layer("a convolution channels=4 kernel=9"),
            "toy.net:5: layer a (convolution 9x9, 4 channels) does not fit what it reads, 3x8x8; "
            "use a larger --image-size");
}

TEST(BadNetworkFile, WhoseLossReadsAnotherNumberOfClasses) {
  EXPECT_EQ(refused_layers("fc linear features=4\nloss softmax-cross-entropy\n"),
            "toy.net:6: layer loss tells 5 classes apart, but reads 4 numbers from layer fc; write "
            "the word classes for the number that decides that");
}

TEST(BadNetworkFile, ThatCannotHaveTheClassesAskedFor) {
  std::istringstream text{kHeader + "fc linear features=5\nloss softmax-cross-entropy\n"};
  const CatalogueEntry entry = read_network(text, "toy.net");
  EXPECT_EQ(refusal([&] { return entry.build(entry.image, 5); }), "accepted");
  EXPECT_EQ(refusal([&] { return entry.build(entry.image, 7); }),
            "toy.net:6: layer loss tells 7 classes apart, but reads 5 numbers from layer fc; write "
            "the word classes for the number that decides that");
}

TEST(BadNetworkFile, WithNothingToTrain) {
  EXPECT_EQ(refused("spillway-network 1\nname toy\ninput 5x1x1\nclasses 5\nloss "
                    "softmax-cross-entropy\n"),
            "toy.net has no layer with parameters, so that there is nothing to train; add a "
            "convolution or a linear layer");
}

// 2^20 channels of 16398^2 numbers and more; 16398 = 8 + 2 * 16384 - 16384 + 1 + ... does not
// matter, it is more than 2^40.
TEST(BadNetworkFile, WithLayersTooLargeToCount) {
  const std::string sentence =
      refused_layer("a convolution channels=1048576 kernel=1 padding=16384");
  EXPECT_TRUE(
      sentence.starts_with("toy.net:5: layer a makes 1048576x32776x32776, and with it all "
                           "layers together more than 2^40 numbers"))
      << sentence;
}

// Sides grow by 32,768 a layer, so that their product would need more than 64 bits.
TEST(BadNetworkFile, WithShapesThatNeedMoreThan64Bits) {
  std::string layers;
  for (int i = 0; i < 40; ++i) {
    layers += "c" + std::to_string(i) + " convolution channels=1 padding=16384\n";
  }
  const std::string sentence = refused_layer(layers + "c convolution channels=1048576");
  EXPECT_NE(sentence.find("more than 2^40 numbers"), std::string::npos) << sentence;
}

// 2^20 * 2^20 * 2^13 * 2^13 weights, which 64 bits do not count.
TEST(BadNetworkFile, WithMoreParametersThan64BitsCount) {
  EXPECT_EQ(refused_layers("wide linear features=1048576\n"
                           "large convolution channels=1048576 kernel=8193 padding=4096\n"
                           "mean global-average-pool\n" +
                           kEnd),
            "toy.net has more than 2^40 parameters; make its layers smaller");
}

TEST(BadNetworkFile, WithTooManyLayers) {
  std::string layers;
  for (std::size_t i = 0; i < kMostLayers; ++i) layers += "r" + std::to_string(i) + " relu\n";
  EXPECT_EQ(refused_layers(layers + kEnd),
            "toy.net:100005: a network has at most 100000 layers, and here comes another");
}

// ---- files

TEST(BadNetworkFile, WithALineThatIsTooLong) {
  const std::string blanks(TextLines::kLongestLine - 6, ' ');
  EXPECT_EQ(refused_layer("a" + blanks + " relu"), "accepted");
  EXPECT_EQ(refused_layer("a" + blanks + "  relu"),
            "toy.net:5: this line is longer than the 65536 bytes that a line may have");
}

TEST(BadNetworkFile, WithCharactersThatAreNone) {
  EXPECT_EQ(refused_layer(std::string{"a re\0lu", 7}),
            "toy.net:5: this line holds the byte 0x00, so that this is no text; a network is "
            "written in plain text");
  EXPECT_EQ(refused_layer("a relu # \x1b[31m"),
            "toy.net:5: this line holds the byte 0x1b, so that this is no text; a network is "
            "written in plain text");
  EXPECT_EQ(refused_layer("\xc3\xa4 relu"),
            "toy.net:5: this line holds a character that is not ASCII, which only comments may");
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
            "cannot read network file " + folder.file("none.net") + ": No such file or directory");
  EXPECT_EQ(refusal([&] { return open_network(folder.path()).name; }),
            "cannot read " + folder.path().string() + ": it is a folder, not a network file");
  EXPECT_EQ(refusal([&] { return open_network("/proc/self/mem").name; }),
            "cannot read /proc/self/mem: Input/output error");
}

}  // namespace
}  // namespace spillway::nets
