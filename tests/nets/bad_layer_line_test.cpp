// Layers of network files that are wrong: one sentence each, with file, line and layer.

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "nets/shape.h"
#include "nets/text/network_declaration.h"
#include "nets/text/network_file.h"
#include "tests/nets/refused_network.h"
#include "tests/refusal.h"

namespace spillway::nets {
namespace {

using test::expect_refusals;
using test::kEnd;
using test::kHeader;
using test::refusal;
using test::refused;
using test::refused_layer;
using test::refused_layers;

TEST(BadLayerLine, IsToldWhatItCannotRead) {
  expect_refusals({
      {"a relu b\nb relu a", ":5: layer a ", "reads b of line 6"},
      {"a add image a", ":5: layer a ", "reads itself"},
      {"a add image fc", ":5: layer a ", "reads fc of line 6"},
      {"a relu nothing", ":5: layer a reads 'nothing'", "no layer of that name"},
      // What is meant as a parameter is one word.
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

// What the builder refuses too, here with the line.
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

// 2^20 channels of 16398^2 numbers and more; 16398 = 8 + 2 * 16384 - 16384 + 1 + ... does not
// matter, it is more than 2^40.
TEST(BadLayerLine, WithLayersTooLargeToCount) {
  expect_refusals({{"a convolution channels=1048576 kernel=1 padding=16384",
                    ":5: layer a makes 1048576x32776x32776", "more than 2^40 numbers"}});
}

// Sides grow by 32,768 a layer, so that their product would need more than 64 bits.
TEST(BadLayerLine, WithShapesThatNeedMoreThan64Bits) {
  std::string layers;
  for (int i = 0; i < 40; ++i) {
    layers += "c" + std::to_string(i) + " convolution channels=1 padding=16384\n";
  }
  expect_refusals({{layers + "c convolution channels=1048576", "", "more than 2^40 numbers"}});
}

// 2^20 * 2^20 * 2^13 * 2^13 weights, which 64 bits do not count.
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
