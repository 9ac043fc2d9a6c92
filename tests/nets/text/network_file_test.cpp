#include "nets/text/network_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "nets/builder.h"
#include "nets/families/network_catalogue.h"
#include "nets/layer_kinds.h"
#include "nets/text/network_declaration.h"
#include "tests/nets/same_network.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace spillway::nets {
namespace {

using test::difference;
using test::TemporaryFolder;

constexpr Shape kSmall{.channels = 3, .height = 8, .width = 8};

CatalogueEntry read(const std::string& text) {
  std::istringstream stream{text};
  return read_network(stream, "toy.net");
}

const std::string kToy = R"(spillway-network 1
name toy
input 3x8x8
classes 5

conv   convolution channels=6 kernel=3 padding=1
half   pool
fc     linear features=classes
loss   softmax-cross-entropy
)";

TEST(NetworkFile, HoldsWhatItsHeaderSays) {
  const CatalogueEntry entry = read(kToy);
  EXPECT_EQ(entry.name, "toy");
  EXPECT_EQ(entry.description, "a network of your own");
  EXPECT_EQ(entry.image, kSmall);
  EXPECT_EQ(entry.classes, 5U);
  const Network network = entry.build(entry.image, entry.classes);
  EXPECT_EQ(network.name, "toy");
  EXPECT_EQ(network.nodes.front().name, "image");
  EXPECT_EQ(network.input(), kSmall);
  EXPECT_EQ(network.classes(), 5U);
}

TEST(NetworkFile, DescribesTheNetworkWhereItSaysSo) {
  std::string text = kToy;
  text.insert(text.find("input"), "description A toy,  for tests\n");
  EXPECT_EQ(read(text).description, "A toy, for tests");
}

// 6 (3 * 3 * 3) + 6 weights of the convolution, 5 (6 * 4 * 4) + 5 of the linear layer.
TEST(NetworkFile, IsTheNetworkThatItsLinesSay) {
  const Network network = read(kToy).build(kSmall, 5);
  ASSERT_EQ(network.nodes.size(), 5U);
  EXPECT_EQ(to_string(network.nodes[1].output), "6x8x8");
  EXPECT_EQ(to_string(network.nodes[2].output), "6x4x4");
  EXPECT_EQ(count_parameters(network), 168U + 485U);
}

TEST(NetworkFile, ReadsTheLineBeforeWhereALayerDoesNotSayWhat) {
  const Network network = read(R"(spillway-network 1
name toy
input 3x8x8
classes 5
a    relu
b    relu a
c    relu image
d    add a c
e    add b d
fc   linear features=classes
loss softmax-cross-entropy fc
)")
                              .build(kSmall, 5);
  const auto inputs = [&](std::size_t i) { return network.nodes[i].inputs; };
  EXPECT_EQ(inputs(1), std::vector{NodeId{0}});
  EXPECT_EQ(inputs(2), std::vector{NodeId{1}});
  EXPECT_EQ(inputs(3), std::vector{NodeId{0}});
  EXPECT_EQ(inputs(4), (std::vector{NodeId{1}, NodeId{3}}));
  EXPECT_EQ(inputs(5), (std::vector{NodeId{2}, NodeId{4}}));
  EXPECT_EQ(inputs(6), std::vector{NodeId{5}});
}

TEST(NetworkFile, InfersTheShapesAnewForAnotherImage) {
  const CatalogueEntry entry = read(kToy);
  const Shape wide{.channels = 3, .height = 10, .width = 20};
  const Network network = entry.build(wide, 5);
  EXPECT_EQ(network.input(), wide);
  EXPECT_EQ(to_string(network.nodes[2].output), "6x5x10");
}

TEST(NetworkFile, PutsTheNumberOfClassesWhereItsTextSaysClasses) {
  const Network network = read(R"(spillway-network 1
name toy
input 3x8x8
classes 5
score  convolution channels=classes
more   convolution channels=classes kernel=8
last   linear features=classes
loss   softmax-cross-entropy
)")
                              .build(kSmall, 9);
  EXPECT_EQ(to_string(network.nodes[1].output), "9x8x8");
  EXPECT_EQ(to_string(network.nodes[2].output), "9x1x1");
  EXPECT_EQ(network.classes(), 9U);
}

TEST(NetworkFile, TakesCommentsBlankLinesTabsAndWindowsLineEnds) {
  const std::string text =
      "# \xc3\xa4 toy\r\n\r\n  spillway-network\t1 # the format\r\nname toy\r\n#\r\ninput 3x8x8\r\n"
      "classes 5\r\n\tconv\tconvolution  channels=6 kernel=3 padding=1# a comment\r\n\r\n"
      "half pool # of \xe2\x89\xa4 2\r\nfc linear features=classes\r\nloss softmax-cross-entropy";
  EXPECT_EQ(difference(read(text).build(kSmall, 5), read(kToy).build(kSmall, 5)), "");
}

// The order of parameters is free, the order of inputs is not.
TEST(NetworkFile, TakesParametersInAnyOrder) {
  std::string text = kToy;
  text.replace(text.find("channels=6 kernel=3 padding=1"), 29, "padding=1x1 channels=6 kernel=3x3");
  EXPECT_EQ(difference(read(text).build(kSmall, 5), read(kToy).build(kSmall, 5)), "");
}

// ---- the format as README.md describes it

std::string readme() {
  std::ostringstream text;
  text << std::ifstream{SPILLWAY_NETS_README}.rdbuf();
  return text.str();
}

TEST(NetworkFilesOfTheReadme, AreNetworks) {
  const std::string text = readme();
  const std::size_t begin = text.find("spillway-network 1");
  ASSERT_NE(begin, std::string::npos);
  const CatalogueEntry entry = read(text.substr(begin, text.find("```", begin) - begin));
  const Network network = entry.build(entry.image, entry.classes);
  EXPECT_EQ(network.name, "tiny");
  EXPECT_EQ(entry.description, "Two branches, then a sum");
  EXPECT_EQ(network.nodes.size(), 1U + 8U);
  EXPECT_EQ(network.classes(), 10U);
}

// Looks up every word of layer_kinds.h: "| `convolution` | 1 | `channels` `kernel`=1".
TEST(NetworkFilesOfTheReadme, HaveTheWordsThatItLists) {
  std::istringstream lines{readme()};
  std::vector<std::string> table;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| `")) table.push_back(line);
  }
  for_each_kind([&](const auto& kind) {
    const std::string word = "`" + std::string{kind.word} + "`";
    const auto row = std::ranges::find_if(
        table, [&](const std::string& line) { return line.find(word) < line.find('|', 1); });
    ASSERT_NE(row, table.end()) << word;
    for_each_field(kind, [&](const auto& field) {
      EXPECT_NE(row->find("`" + std::string{field.word} + "`"), std::string::npos)
          << field.word << " is missing in " << *row;
    });
  });
}

TEST(NetworkFile, IsToldFromABuiltInNetworkByItsName) {
  EXPECT_TRUE(is_network_file("toy.net"));
  EXPECT_TRUE(is_network_file("./toy"));
  EXPECT_TRUE(is_network_file("networks/lenet"));
  EXPECT_FALSE(is_network_file("lenet"));
  EXPECT_FALSE(is_network_file("alexnet"));  // it ends in "net", not in ".net"
  EXPECT_FALSE(is_network_file("resnet:6,32,100,6"));
  EXPECT_FALSE(is_network_file("resnet:6"));
  EXPECT_FALSE(is_network_file("no-such-file"));
  EXPECT_FALSE(is_network_file(std::string(100'000, 'x')));
}

TEST(NetworkFile, NeedsNoExtensionWhereThereIsNoBuiltInNetworkOfThatName) {
  const TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  std::ofstream{"toy"} << kToy;
  std::ofstream{"lenet"} << kToy;
  std::filesystem::create_directory("folder");
  EXPECT_TRUE(is_network_file("toy"));
  EXPECT_FALSE(is_network_file("lenet"));
  EXPECT_FALSE(is_network_file("folder"));
  EXPECT_EQ(open_network("toy").name, "toy");
  EXPECT_EQ(open_network("lenet").name, "lenet");
  EXPECT_EQ(open_network("./lenet").name, "toy");
  std::filesystem::current_path(before);
}

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

// tests/src/cli/golden/refusals.txt has other files that are no networks.

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
  std::string sentence = test::refusal([&] { return read_network(stream, "noise.net").name; });
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

}  // namespace
}  // namespace spillway::nets
