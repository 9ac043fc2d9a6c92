#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>

#include "nets/builder.h"
#include "nets/families/network_catalogue.h"
#include "nets/text/network_file.h"
#include "tests/nets/same_network.h"

namespace spillway::nets {
namespace {

using test::difference;

CatalogueEntry read_text(const std::string& text) {
  std::istringstream stream{text};
  return read_network(stream, "dumped.net");
}

// Writes, reads and writes again.
void expect_round_trip(const CatalogueEntry& entry, const NetworkOptions& options) {
  SCOPED_TRACE(entry.name);
  const Shape image = options.image.value_or(entry.image);
  const std::size_t classes = options.classes.value_or(entry.classes);
  const std::string text = to_text(entry, options);
  const CatalogueEntry again = read_text(text);
  EXPECT_EQ(again.image, image);
  EXPECT_EQ(again.classes, classes);
  EXPECT_EQ(difference(again.build(image, classes), build_network(entry, options)), "");
  EXPECT_EQ(to_text(again), text);
}

TEST(NetworkText, OfEveryBuiltInNetworkGivesTheSameNetworkAgain) {
  for (const CatalogueEntry& entry : catalogue()) expect_round_trip(entry, {});
}

TEST(NetworkText, OfANetworkAloneGivesItAgain) {
  for (const CatalogueEntry& entry : catalogue()) {
    Network network = build_network(entry, {.classes = 7});
    set_dropout(network, 0.25F);
    const CatalogueEntry again = read_text(to_text(network));
    EXPECT_EQ(again.name, network.name);
    EXPECT_EQ(again.classes, 7U);
    EXPECT_EQ(difference(build_network(again), network), "");
  }
}

// Returns a shorter text or a larger image, which no network refuses.
Shape another(const Shape& image) {
  if (image.form == Form::kTokens) return tokens(image.height / 3);
  return {.channels = image.channels, .height = image.height + 9, .width = image.width + 40};
}

TEST(NetworkText, OfAnotherImageAndNumberOfClassesGivesTheSameNetworkAgain) {
  for (const CatalogueEntry& entry : catalogue()) {
    const Shape image = another(entry.image);
    expect_round_trip(entry, {.image = image, .classes = 7});
  }
}

TEST(NetworkText, OfFamiliesGivesTheSameNetworkAgain) {
  for (const NetworkFamily& family : network_families()) {
    expect_round_trip(find_network(family.example), {});
  }
}

// Files accept the same sizes as names and flags.
TEST(NetworkText, OfTheLargestSizesGivesTheSameNetworkAgain) {
  constexpr std::size_t kLargest = 1U << 20U;
  for (const char* name : {"gpt:1,1,65536,65536", "llama:1,32768,32768,65536,65536,65536"}) {
    expect_round_trip(find_network(name), {.classes = kLargest});
  }
  expect_round_trip(find_network("gpt:2048,1,2,8"), {});
  const CatalogueEntry of_any_length = read_text(
      "spillway-network 1\nname a\ninput 9 tokens\nclasses 5\n"
      "wte embedding vocabulary=classes features=4\nloss vocabulary-loss vocabulary=classes\n");
  expect_round_trip(of_any_length, {.image = tokens(kLargest)});
}

TEST(NetworkText, OfAuxiliaryHeadsGivesTheSameNetworkAgain) {
  for (const CatalogueEntry& entry : catalogue()) {
    if (!entry.build_with_heads) continue;
    expect_round_trip(entry, {.classes = 7, .auxiliary_heads = true});
    const std::string text = to_text(entry, {.auxiliary_heads = true});
    EXPECT_NE(text.find("\nname " + entry.name + "+aux-heads\n"), std::string::npos);
    EXPECT_EQ(difference(read_text(text).build(entry.image, 12),
                         build_network(entry, {.classes = 12, .auxiliary_heads = true})),
              "");
  }
}

// Names, parameters, inputs and shapes each make a difference.
TEST(NetworkText, OfLayersTellsNetworksApart) {
  const auto text = [](const std::string& second, const std::string& third) {
    const std::string file = "spillway-network 1\nname a\ninput 3x8x8\nclasses 4\n" +
                             std::string{"a convolution channels=4 kernel=3 padding=1\n"} + second +
                             "\n" + third + "\nfc linear features=classes\n" +
                             "loss softmax-cross-entropy\n";
    return layers_text(read_text(file).build({3, 8, 8}, 4));
  };
  const std::string mine = text("b dropout", "c add a b");
  EXPECT_EQ(mine, text("b   dropout a probability=0.5  # a comment", "c add a b"));
  EXPECT_NE(mine, text("b dropout probability=0.25", "c add a b"));
  EXPECT_NE(mine, text("b relu", "c add a b"));
  EXPECT_NE(mine, text("b dropout", "c add b a"));
  EXPECT_NE(mine, text("b dropout", "d add a b"));
  EXPECT_NE(layers_text(build_network("resnet18")),
            layers_text(build_network("resnet18", {.image = Shape{3, 256, 256}})));
  EXPECT_NE(layers_text(build_network("lenet")),
            layers_text(build_network("lenet", {.classes = 11})));
}

// The text says `classes` wherever a built-in network depends on it, so that it builds the same
// network for other numbers of classes.
TEST(NetworkText, LeavesTheNumberOfClassesOpen) {
  for (const CatalogueEntry& entry : catalogue()) {
    SCOPED_TRACE(entry.name);
    EXPECT_EQ(
        difference(read_text(to_text(entry)).build(entry.image, 12), entry.build(entry.image, 12)),
        "");
  }
}

TEST(NetworkText, LeavesTheSizeOfTheImageOpen) {
  for (const CatalogueEntry& entry : catalogue()) {
    SCOPED_TRACE(entry.name);
    const Shape image = another(entry.image);
    EXPECT_EQ(difference(read_text(to_text(entry)).build(image, 10), entry.build(image, 10)), "");
  }
}

TEST(NetworkText, IsOneLineALayer) {
  EXPECT_EQ(to_text(find_network("lenet"), {.classes = 12}),
            R"(spillway-network 1
name lenet
description LeNet-5 with ReLU and max pooling (after LeCun et al., 1998)
input 1x28x28
classes 12

conv1  convolution            channels=6 kernel=5 padding=2  # 6x28x28
relu1  relu                                                  # 6x28x28
pool1  pool                                                  # 6x14x14
conv2  convolution            channels=16 kernel=5           # 16x10x10
relu2  relu                                                  # 16x10x10
pool2  pool                                                  # 16x5x5
fc3    linear                 features=120                   # 120x1x1
relu3  relu                                                  # 120x1x1
fc4    linear                 features=84                    # 84x1x1
relu4  relu                                                  # 84x1x1
fc5    linear                 features=classes               # 12x1x1
loss   softmax-cross-entropy                                 # 12x1x1
)");
}

// Builds a network with every kind of layer and no field at its default.
Network unusual(const Shape& image, std::size_t classes) {
  Builder net{"unusual", image};
  NodeId x = net.convolution("conv", net.input(),
                             {.channels = 8,
                              .kernel = {.height = 1, .width = 7},
                              .stride = {.height = 2, .width = 1},
                              .padding = {.height = 0, .width = 3},
                              .bias = false});
  x = net.batch_norm("norm", x, {.epsilon = 1e-3F, .momentum = 0.3F});
  x = net.local_response_norm("lrn", x, {.size = 3, .alpha = 5e-4F, .beta = 0.7F, .k = 2.5F});
  const NodeId y = net.pool("pool", x,
                            {.kind = PoolKind::kAverage,
                             .kernel = square(3),
                             .stride = square(1),
                             .padding = square(1),
                             .counts_padding = true,
                             .rounds_up = true});
  x = net.concat("both", {x, net.sum("sum", x, y), net.relu("relu", y)});
  const NodeId mean = net.global_average_pool("mean", x);
  x = net.linear("fc", net.flatten("flat", net.dropout("drop", x, {.probability = 0.1F})),
                 {.features = 24, .bias = false});
  return net.build(net.linear("logits", net.sum("joined", x, mean), {.features = classes}));
}

TEST(NetworkText, SaysEveryFieldThatHasNotItsDefault) {
  const CatalogueEntry entry{.name = "unusual",
                             .description = "Every layer",
                             .image = {.channels = 3, .height = 12, .width = 12},
                             .classes = 4,
                             .build = unusual};
  expect_round_trip(entry, {});
  const std::string text = to_text(entry);
  for (const std::string_view words :
       {"kernel=1x7 stride=2x1 padding=0x3 bias=no", "epsilon=0.001 momentum=0.3",
        "size=3 alpha=5e-04 beta=0.7 k=2.5",
        "kind=average kernel=3 stride=1 padding=1 counts-padding=yes rounds-up=yes", "lrn sum relu",
        "features=24 bias=no", "probability=0.1", "features=classes"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << " is not in\n" << text;
  }
}

// The file fixes the number of classes, so the text contains numbers only.
TEST(NetworkText, OfAFileWithoutTheWordClassesHasTheNumber) {
  const std::string text = R"(spillway-network 1
name fixed
description Of five classes
input 3x4x4
classes 5

fc    linear                 features=5  # 5x1x1
loss  softmax-cross-entropy              # 5x1x1
)";
  EXPECT_EQ(to_text(read_text(text)), text);
}

}  // namespace
}  // namespace spillway::nets
