// Layers of network files that are wrong: one sentence each, with file, line and layer.

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "nets/text/network_declaration.h"
#include "nets/text/network_file.h"
#include "tests/nets/refused_network.h"
#include "tests/refusal.h"

namespace spillway::nets {
namespace {

using test::kEnd;
using test::kHeader;
using test::refusal;
using test::refused;
using test::refused_layer;
using test::refused_layers;

// ---- which layers read which

TEST(BadLayerLine, WithACycle) {
  EXPECT_EQ(refused_layers("a relu b\nb relu a\n" + kEnd),
            "toy.net:5: layer a reads b of line 6, but a layer can read only layers before it");
  EXPECT_EQ(refused_layer("a add image a"),
            "toy.net:5: layer a reads itself, but a layer can read only layers before it");
}

TEST(BadLayerLine, ThatReadsALayerBeforeItIsThere) {
  EXPECT_EQ(refused_layer("a add image fc"),
            "toy.net:5: layer a reads fc of line 6, but a layer can read only layers before it");
}

TEST(BadLayerLine, WithAnInputThatIsMissing) {
  EXPECT_EQ(refused_layer("a relu nothing"),
            "toy.net:5: layer a reads 'nothing', but there is no layer of that name");
  // What is meant as a parameter is one word.
  EXPECT_EQ(refused_layer("conv convolution channels = 4"),
            "toy.net:5: layer conv reads 'channels', but there is no layer of that name");
}

TEST(BadLayerLine, WithTheWrongNumberOfInputs) {
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

TEST(BadLayerLine, WithTwoLayersOfOneName) {
  EXPECT_EQ(refused_layers("a relu\nb relu\na relu\n" + kEnd),
            "toy.net:7: layer a has the name of the layer on line 5; give it one of its own");
  EXPECT_EQ(refused_layer("image relu"),
            "toy.net:5: layer image has the name of the network's input; give it one of its own");
}

TEST(BadLayerLine, WithALayerThatNobodyReads) {
  EXPECT_EQ(refused_layers("a relu\nb relu image\n" + kEnd),
            "toy.net:5: layer a is read by no other; remove it, or name it behind the kind of the "
            "layer that shall read it");
}

TEST(BadLayerLine, WithoutALossAtItsEnd) {
  EXPECT_EQ(refused_layers(""),
            "toy.net has no layers; the last one must be the loss, such as 'loss "
            "softmax-cross-entropy'");
  EXPECT_EQ(refused_layers("fc linear features=classes\n"),
            "toy.net:5: layer fc is the last one; there a loss belongs, such as 'loss "
            "softmax-cross-entropy'");
}

TEST(BadLayerLine, WithALossBeforeItsEnd) {
  EXPECT_EQ(refused_layers("early softmax-cross-entropy\n" + kEnd),
            "toy.net:5: layer early is a loss, which no other can read; the next line has to say "
            "which layer it reads");
}

// ---- layers

TEST(BadLayerLine, WithALayerThatThereIsNot) {
  EXPECT_TRUE(
      refused_layer("a swish").starts_with("toy.net:5: layer a is a 'swish', which is no layer; "
                                           "there are convolution, transposed-convolution, "))
      << refused_layer("a swish");
  EXPECT_EQ(refused_layer("a"),
            "toy.net:5: layer a says nothing but its name; what kind of layer it is belongs behind "
            "that");
}

TEST(BadLayerLine, WithAParameterThatTheLayerDoesNotTake) {
  EXPECT_EQ(refused_layer("a linear features=4 kernel=3"),
            "toy.net:5: layer a (linear) has no parameter 'kernel'; it takes features and bias");
  EXPECT_EQ(refused_layer("a dropout p=0.5"),
            "toy.net:5: layer a (dropout) has no parameter 'p'; it takes probability");
  EXPECT_EQ(refused_layer("a relu slope=0.1"),
            "toy.net:5: layer a (relu) has no parameter 'slope'; it takes none");
}

TEST(BadLayerLine, ThatSaysAParameterTwice) {
  EXPECT_EQ(refused_layer("a linear features=4 features=4"),
            "toy.net:5: layer a (linear) says 'features' twice");
}

TEST(BadLayerLine, WithoutAParameterThatHasNoDefault) {
  EXPECT_EQ(refused_layer("a convolution kernel=3"),
            "toy.net:5: layer a (convolution) needs channels=NUMBER");
  EXPECT_EQ(refused_layer("a linear"), "toy.net:5: layer a (linear) needs features=NUMBER");
}

TEST(BadLayerLine, WithANumberThatIsNone) {
  for (const std::string number : {"", "-4", "4.0", "four", "+4", "0x10", "1e3", "4,"}) {
    EXPECT_EQ(refused_layer("a linear features=" + number),
              "toy.net:5: layer a (linear) says features=" + number +
                  "; there belongs a whole number from 0 to 1048576 or the word classes");
  }
}

TEST(BadLayerLine, WithASideThatIsNone) {
  for (const std::string side : {"", "-1", "3x", "x3", "3x3x3", "16385", "3*3", "classes"}) {
    EXPECT_EQ(refused_layer("a convolution channels=4 kernel=" + side),
              "toy.net:5: layer a (convolution) says kernel=" + side +
                  "; there belongs a whole number from 0 to 16384, or two of them, height and "
                  "width, as 1x7");
  }
}

TEST(BadLayerLine, WithARateThatIsNone) {
  for (const std::string rate : {"", "half", "nan", "inf", "1e99", "0.5f", "1/2"}) {
    EXPECT_EQ(refused_layer("a dropout probability=" + rate),
              "toy.net:5: layer a (dropout) says probability=" + rate + "; there belongs a number");
  }
}

TEST(BadLayerLine, WithAWordThatIsNoneOfThoseThereAre) {
  EXPECT_EQ(refused_layer("a pool kind=mean"),
            "toy.net:5: layer a (pool) says kind=mean; there belongs max or average");
  EXPECT_EQ(refused_layer("a linear features=4 bias=true"),
            "toy.net:5: layer a (linear) says bias=true; there belongs yes or no");
}

TEST(BadLayerLine, WithAZeroWhereThereMustBeSomething) {
  EXPECT_EQ(refused_layer("a convolution channels=0"),
            "toy.net:5: layer a (convolution 1x1, 0 channels) needs at least one channel");
  EXPECT_EQ(refused_layer("a linear features=0"),
            "toy.net:5: layer a (linear, 0 features) needs at least one feature");
  EXPECT_EQ(refused_layer("a pool stride=0x1"),
            "toy.net:5: layer a (max pool 2x2, stride 0x1) needs a kernel and a stride of at least "
            "1");
}

TEST(BadLayerLine, WithANumberThatALayerCannotUse) {
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

TEST(BadLayerLine, WithShapesThatDoNotMatch) {
  EXPECT_EQ(refused_layers("a convolution channels=4\nb add a image\n" + kEnd),
            "toy.net:6: layer b (add) adds only equal shapes and reads 4x8x8 and 3x8x8");
  EXPECT_EQ(refused_layers("a pool\nb concat a image\n" + kEnd),
            "toy.net:6: layer b (concat) joins only images of one height and width and reads 3x4x4 "
            "and 3x8x8");
}

TEST(BadLayerLine, WithAWindowLargerThanTheImage) {
  EXPECT_EQ(refused_layer("a convolution channels=4 kernel=9"),
            "toy.net:5: layer a (convolution 9x9, 4 channels) does not fit what it reads, 3x8x8; "
            "use a larger --image-size");
}

TEST(BadLayerLine, WhoseLossReadsAnotherNumberOfClasses) {
  EXPECT_EQ(refused_layers("fc linear features=4\nloss softmax-cross-entropy\n"),
            "toy.net:6: layer loss tells 5 classes apart, but reads 4 numbers from layer fc; write "
            "the word classes for the number that decides that");
}

TEST(BadLayerLine, ThatCannotHaveTheClassesAskedFor) {
  std::istringstream text{kHeader + "fc linear features=5\nloss softmax-cross-entropy\n"};
  const CatalogueEntry entry = read_network(text, "toy.net");
  EXPECT_EQ(refusal([&] { return entry.build(entry.image, 5); }), "accepted");
  EXPECT_EQ(refusal([&] { return entry.build(entry.image, 7); }),
            "toy.net:6: layer loss tells 7 classes apart, but reads 5 numbers from layer fc; write "
            "the word classes for the number that decides that");
}

TEST(BadLayerLine, WithNothingToTrain) {
  EXPECT_EQ(refused("spillway-network 1\nname toy\ninput 5x1x1\nclasses 5\nloss "
                    "softmax-cross-entropy\n"),
            "toy.net has no layer with parameters, so that there is nothing to train; add a "
            "convolution or a linear layer");
}

// 2^20 channels of 16398^2 numbers and more; 16398 = 8 + 2 * 16384 - 16384 + 1 + ... does not
// matter, it is more than 2^40.
TEST(BadLayerLine, WithLayersTooLargeToCount) {
  const std::string sentence =
      refused_layer("a convolution channels=1048576 kernel=1 padding=16384");
  EXPECT_TRUE(
      sentence.starts_with("toy.net:5: layer a makes 1048576x32776x32776, and with it all "
                           "layers together more than 2^40 numbers"))
      << sentence;
}

// Sides grow by 32,768 a layer, so that their product would need more than 64 bits.
TEST(BadLayerLine, WithShapesThatNeedMoreThan64Bits) {
  std::string layers;
  for (int i = 0; i < 40; ++i) {
    layers += "c" + std::to_string(i) + " convolution channels=1 padding=16384\n";
  }
  const std::string sentence = refused_layer(layers + "c convolution channels=1048576");
  EXPECT_NE(sentence.find("more than 2^40 numbers"), std::string::npos) << sentence;
}

// 2^20 * 2^20 * 2^13 * 2^13 weights, which 64 bits do not count.
TEST(BadLayerLine, WithMoreParametersThan64BitsCount) {
  EXPECT_EQ(refused_layers("wide linear features=1048576\n"
                           "large convolution channels=1048576 kernel=8193 padding=4096\n"
                           "mean global-average-pool\n" +
                           kEnd),
            "toy.net has more than 2^40 parameters; make its layers smaller");
}

TEST(BadLayerLine, WithTooManyLayers) {
  std::string layers;
  for (std::size_t i = 0; i < kMaxLayers; ++i) layers += "r" + std::to_string(i) + " relu\n";
  EXPECT_EQ(refused_layers(layers + kEnd),
            "toy.net:100005: a network has at most 100000 layers, and here comes another");
}

}  // namespace
}  // namespace spillway::nets
