// `spillway nets --json`: the built-in networks, and what they take.

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nets/network_catalogue.h"
#include "tests/src/cli/program.h"

namespace spillway {
namespace {

using nlohmann::json;
using test::Outcome;
using test::run_spillway;

TEST(NetsJson, DescribesEveryNetwork) {
  const Outcome outcome = run_spillway({"nets", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const json nets = json::parse(outcome.output);

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
  // Every name that users may type, and examples of names that say depths.
  std::vector<std::string> expected;
  for (const nets::CatalogueEntry& entry : nets::catalogue()) expected.push_back(entry.name);
  expected.insert(expected.end(), {"resnet:6,32,100,6", "vgg:2,22,66,4,4"});
  EXPECT_EQ(names, expected);
}

TEST(NetsJson, HasAuxiliaryHeadsOnRequest) {
  const Outcome outcome = run_spillway({"nets", "--aux-heads", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  std::map<std::string, int> parameters;
  for (const json& net : json::parse(outcome.output)) {
    parameters.emplace(net.at("name"), net.at("parameters"));
  }
  EXPECT_EQ(parameters.size(), nets::catalogue().size() + 2);
  EXPECT_EQ(parameters["googlenet+aux-heads"], 13'004'888);  // torchvision's
  EXPECT_EQ(parameters["inception-v3+aux-heads"], 27'161'264);
  EXPECT_EQ(parameters["vgg16"], 138'357'544);
  EXPECT_FALSE(parameters.contains("googlenet"));
}

TEST(NetsJson, DescribesAMemberOfAFamily) {
  const Outcome outcome = run_spillway({"nets", "resnet:1,2,1,1", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const json net = json::parse(outcome.output).front();
  EXPECT_EQ(net.at("name"), "resnet:1,2,1,1");
  EXPECT_EQ(net.at("description"), "ResNet with bottlenecks, 17 layers (after He et al., 2015)");
}

// So that a budget found in the table is one to run with.
TEST(NetsJson, WithTheClassesOfARunNamesItsSmallestBudget) {
  const Outcome nets = run_spillway({"nets", "resnet18", "--classes", "10", "--json", "-"});
  const Outcome plan = run_spillway({"plan", "--net", "resnet18", "--batch", "8", "--json", "-"});
  ASSERT_EQ(nets.exit_code, 0) << nets.errors;
  ASSERT_EQ(plan.exit_code, 0) << plan.errors;

  const json resnet18 = json::parse(nets.output).front();
  const json planned = json::parse(plan.output);
  EXPECT_EQ(resnet18.at("classes"), 10);
  EXPECT_EQ(resnet18.at("smallest_budget_bytes").at("8"), planned.at("min_budget_bytes"));
  EXPECT_EQ(resnet18.at("resident_bytes").at("8"), planned.at("resident_bytes"));
}

// The parameters that the papers and torchvision give for 1000 classes.
TEST(NetsJson, KnowsTheSizesOfThePapersNetworks) {
  std::map<std::string, int> unseen{
      {"alexnet", 62'378'344},     {"vgg16", 138'357'544},       {"vgg19", 143'667'240},
      {"googlenet", 6'624'904},    {"inception-v3", 23'834'568}, {"inception-v4", 42'679'816},
      {"resnet18", 11'689'512},    {"resnet34", 21'797'672},     {"resnet50", 25'557'032},
      {"resnet101", 44'549'160},   {"resnet152", 60'192'808},    {"densenet121", 7'978'856},
      {"densenet161", 28'681'000}, {"densenet169", 14'149'480},  {"densenet201", 20'013'928}};
  const Outcome outcome = run_spillway({"nets", "--json", "-"});
  for (const json& net : json::parse(outcome.output)) {
    const auto known = unseen.find(net.at("name"));
    if (known == unseen.end()) continue;
    EXPECT_EQ(net.at("parameters"), known->second) << known->first;
    unseen.erase(known);
  }
  EXPECT_TRUE(unseen.empty()) << unseen.begin()->first;
}

}  // namespace
}  // namespace spillway
