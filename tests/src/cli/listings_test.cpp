// The output of `spillway devices` on any machine.
// `spillway nets`: the built-in networks and their needs.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "tests/src/cli/program.h"

namespace spillway::test {
namespace {

using nlohmann::json;

json devices() { return json_of("devices --json -"); }

void expect_description(const json& device) {
  EXPECT_TRUE(device.at("usable"));
  EXPECT_TRUE(device.at("description").is_string());
  EXPECT_TRUE(device.at("backend").is_string());
  EXPECT_GT(device.at("available_memory_bytes"), 0);
  EXPECT_FALSE(device.at("capabilities").empty());
  for (const json& capability : device.at("capabilities")) {
    EXPECT_TRUE(capability.at("name").is_string());
    EXPECT_TRUE(capability.at("comment").is_string());
    EXPECT_TRUE(capability.at("available").is_boolean());
  }
}

TEST(DevicesJson, SaysWhatTheHostCanDo) {
  const json all = devices();
  ASSERT_GE(all.size(), 1U);
  EXPECT_EQ(all.front().at("name"), "host");
  expect_description(all.front());
}

// With or without the CUDA build, a driver or a GPU, the reason is printed.
TEST(DevicesJson, SaysWhatIsWrongWithEachDeviceThatCannotBeUsed) {
  const json all = devices();
  ASSERT_GE(all.size(), 2U);
  for (std::size_t i = 1; i < all.size(); ++i) {
    const json& gpu = all.at(i);
    EXPECT_TRUE(gpu.at("name").get<std::string>().starts_with("cuda")) << gpu;
    if (gpu.at("usable")) {
      expect_description(gpu);
    } else {
      expect_parts(gpu.at("reason").get<std::string>(), {"--device host"});
    }
  }
}

TEST(NetsJson, DescribesEveryNetwork) {
  const json nets = json_of("nets --json -");

  std::vector<std::string> names;
  for (const json& net : nets) {
    names.push_back(net.at("name"));
    for (const char* number :
         {"parameters", "classes", "saved_activation_bytes_per_image", "forward_flops_per_image"}) {
      EXPECT_GT(net.at(number), 0) << number << " in " << net;
    }
    for (const char* batch : {"1", "32"}) {
      EXPECT_LT(net.at("smallest_budget_bytes").at(batch), net.at("resident_bytes").at(batch));
    }
  }
  // All names that users may type, and examples of names with depths.
  std::vector<std::string> expected;
  for (const nets::CatalogueEntry& entry : nets::catalogue()) {
    EXPECT_EQ(nets.at(expected.size()).at("parameters"),
              count_parameters(nets::build_network(entry.name)));
    expected.push_back(entry.name);
  }
  expected.insert(expected.end(), {"resnet:6,32,100,6", "vgg:2,22,66,4,4", "gpt:6,6,384,256",
                                   "llama:22,32,4,2048,5632,2048"});
  EXPECT_EQ(names, expected);
}

TEST(NetsJson, HasAuxiliaryHeadsOnRequest) {
  std::map<std::string, int> parameters;
  for (const json& net : json_of("nets --aux-heads --json -")) {
    parameters.emplace(net.at("name"), net.at("parameters"));
  }
  EXPECT_EQ(parameters.size(), nets::catalogue().size() + 4);
  EXPECT_EQ(parameters["googlenet+aux-heads"], 13'004'888);  // as in torchvision
  EXPECT_EQ(parameters["inception-v3+aux-heads"], 27'161'264);
  EXPECT_EQ(parameters["vgg16"], 138'357'544);
  EXPECT_FALSE(parameters.contains("googlenet"));
}

TEST(NetsJson, DescribesAMemberOfAFamily) {
  const json net = json_of("nets resnet:1,2,1,1 --json -").front();
  EXPECT_EQ(net.at("name"), "resnet:1,2,1,1");
  EXPECT_EQ(net.at("description"), "ResNet with bottlenecks, 17 layers (after He et al., 2015)");
}

TEST(NetsTable, FitsTheTerminal) {
  for (const char* const command : {"nets", "nets llama:1,2,1,64,128,32"}) {
    std::istringstream output{succeed(command).output};
    std::vector<std::string> tables;  // first lines
    for (std::string line; std::getline(output, line);) {
      EXPECT_LE(line.size(), 80U) << line;
      if (line.starts_with("name ")) tables.push_back(line);
    }
    EXPECT_EQ(tables.size(), command == std::string{"nets"} ? 2U : 0U);
  }
}

// A budget from the table must be one that a training can use.
TEST(NetsJson, WithTheClassesOfARunNamesItsSmallestBudget) {
  const json resnet18 = json_of("nets resnet18 --classes 10 --json -").front();
  const json planned = json_of("plan --net resnet18 --batch 8 --json -");
  EXPECT_EQ(resnet18.at("classes"), 10);
  EXPECT_EQ(resnet18.at("smallest_budget_bytes").at("8"), planned.at("min_budget_bytes"));
  EXPECT_EQ(resnet18.at("resident_bytes").at("8"), planned.at("resident_bytes"));
}

}  // namespace
}  // namespace spillway::test
