#include "nets/text/network_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "nets/layer_kinds.h"
#include "tests/nets/same_network.h"
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

}  // namespace
}  // namespace spillway::nets
