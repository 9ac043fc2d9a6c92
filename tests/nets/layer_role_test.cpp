// Layers with correct shapes that do not fit the rest of their network.
#include "nets/layer_role.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nets/builder.h"
#include "nets/families/network_catalogue.h"
#include "tests/nets/refused_network.h"
#include "tests/refusal.h"

namespace spillway::nets {
namespace {

// Refuses layers of a text network after a header of four lines; the embedding is on line 5.
std::string refused_text(const std::string& layers) {
  return test::refused("spillway-network 1\nname toy\ninput 6 tokens\nclasses 5\n" + layers);
}

const std::string kEmbedding = "wte embedding vocabulary=classes features=4\n";

TEST(LayerRole, IsNotWhatTheseTestsStartFrom) {
  EXPECT_EQ(refused_text(kEmbedding + "loss vocabulary-loss wte wte vocabulary=5"), "accepted");
  EXPECT_EQ(refused_text(kEmbedding + "loss vocabulary-loss vocabulary=classes"), "accepted");
}

TEST(LayerRole, OfALossOverAVocabularyIsTheLast) {
  test::expect_refusals(
      {{kEmbedding + "early vocabulary-loss vocabulary=5\nloss vocabulary-loss wte vocabulary=5",
        ":6: layer early (loss over a vocabulary of 5) ", "not the last layer"},
       {kEmbedding + "early vocabulary-loss vocabulary=9\nfirst first-token wte\n"
                     "fc linear features=classes\nloss softmax-cross-entropy",
        ":6: layer early (loss over a vocabulary of 9) ", "not the last layer"}},
      refused_text);
}

TEST(LayerRole, OfAnAuxiliaryLossIsToHaveTheLabelsOfTheLast) {
  test::expect_refusals(
      {{kEmbedding + "first first-token\nfc linear features=classes\naux softmax-cross-entropy\n"
                     "loss vocabulary-loss wte vocabulary=5",
        ":8: layer aux (softmax cross-entropy) ", "whose labels are one for each token"}},
      refused_text);
  test::expect_refusals(
      {{"scores convolution channels=5\naux softmax-cross-entropy\nfc linear image features=5\n"
        "loss softmax-cross-entropy",
        ":6: layer aux (softmax cross-entropy) ", "give all losses the same height and width"},
       {"fewer linear features=3\naux softmax-cross-entropy\nfc linear image features=5\n"
        "loss softmax-cross-entropy",
        ":6: layer aux (softmax cross-entropy) ", "tells 3 classes apart, but the last loss 5"}},
      test::refused_layers);
}

TEST(LayerRole, OfATableIsToBeReadAndOfTheLossesVocabulary) {
  test::expect_refusals(
      {{"wte embedding vocabulary=7 features=4\nloss vocabulary-loss wte wte vocabulary=5",
        ":6: layer loss (loss over a vocabulary of 5) takes its table from wte",
        "no embedding of 5 tokens"},
       {"table embedding vocabulary=5 features=4\nwte embedding image vocabulary=5 features=4\n"
        "loss vocabulary-loss wte table vocabulary=5",
        ":7: layer loss (loss over a vocabulary of 5) takes its table from table",
        "whose tokens no layer reads"}},
      refused_text);
}

TEST(LayerRole, OfAnEmbeddingIsToKnowAllTokens) {
  test::expect_refusals(
      {{"wte embedding vocabulary=4 features=4\nloss vocabulary-loss vocabulary=5",
        ":5: layer wte (embedding of 4 tokens, 4 features) ", "the network's vocabulary of 5"}},
      refused_text);
}

// A crop takes the size of its second input, and reads none of its values.
TEST(LayerRole, OfWhatACropTakesTheSizeOfIsToBeReadOrWithoutWeights) {
  const std::string rest =
      "cut crop wide small\nfc linear features=classes\nloss softmax-cross-entropy";
  test::expect_refusals(
      {{"small convolution channels=4 kernel=3\nwide convolution image channels=5\n" + rest,
        ":7: layer cut (centred crop) takes the size of small", "no layer reads"},
       {"wide convolution image channels=5\nsmall pool\n" + rest,
        ":7: layer cut (centred crop) takes the size of small", "no layer reads"}},
      test::refused_layers);
  EXPECT_EQ(test::refused_layers("small pool\nwide convolution image channels=5\n" + rest),
            "accepted");
  EXPECT_EQ(
      test::refused_layers("small convolution channels=4 kernel=3\nwide convolution image "
                           "channels=5\ncut crop wide small\nboth concat cut small\nfc linear "
                           "features=classes\nloss softmax-cross-entropy"),
      "accepted");
}

TEST(LayerRole, OfALossIsToHaveTheNetworksVocabulary) {
  test::expect_refusals(
      {{kEmbedding + "loss vocabulary-loss vocabulary=6",
        ":6: layer loss has a vocabulary of 6, but the network one of 5", "vocabulary=classes"}},
      refused_text);
}

// A network built in the program gets the same message without a line.
TEST(LayerRole, IsLookedAtInNetworksThatABuilderMakes) {
  EXPECT_EQ(test::refusal([] {
              Builder net{"toy", tokens(6)};
              const NodeId x =
                  net.add("wte", Embedding{.vocabulary = 4, .features = 3}, {net.input()});
              return net.build(x, {.vocabulary = 5}, {});
            }),
            "layer wte (embedding of 4 tokens, 3 features) knows fewer tokens than the network's "
            "vocabulary of 5");
}

std::vector<std::string> norms_of(const std::string& network) {
  return residual_norms(build_network(network));
}

TEST(ResidualNorms, AreTheLastOnesOfBlocksNotThoseOfShortcuts) {
  EXPECT_EQ(
      norms_of("resnet18"),
      (std::vector<std::string>{"layer1.0.bn2", "layer1.1.bn2", "layer2.0.bn2", "layer2.1.bn2",
                                "layer3.0.bn2", "layer3.1.bn2", "layer4.0.bn2", "layer4.1.bn2"}));
  const std::vector<std::string> of_bottlenecks = norms_of("resnet50");
  EXPECT_EQ(of_bottlenecks.size(), 16U);
  EXPECT_EQ(of_bottlenecks.front(), "layer1.0.bn3");
}

TEST(ResidualNorms, AreNotThereWithoutSums) {
  EXPECT_TRUE(norms_of("vgg16").empty());
  EXPECT_TRUE(norms_of("densenet121").empty());
}

// The inputs are convolutions, or a norm that another layer reads, too.
TEST(ResidualNorms, BelongToTheSumAlone) {
  Builder net{"mine", {4, 8, 8}};
  const Convolution same{.channels = 4, .kernel = square(3), .padding = square(1)};
  const NodeId convolved = net.convolution("conv1", net.input(), same);
  const NodeId sum = net.sum("sum1", convolved, net.input());
  const NodeId norm = net.batch_norm("norm", net.convolution("conv2", sum, same));
  const NodeId both = net.sum("sum2", norm, sum);
  const NodeId last = net.sum("sum3", net.relu("relu", norm), both);
  EXPECT_TRUE(residual_norms(net.build(net.linear("fc", last, {.features = 3}))).empty());
}

}  // namespace
}  // namespace spillway::nets
