// Help, and notes about flags without effect. golden/refusals.txt has the errors.
#include <gtest/gtest.h>

#include <algorithm>
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

// Letters of the longest line that could have been broken.
std::size_t longest_line(const std::string& help) {
  std::istringstream lines{help};
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t text = std::min(line.find_first_not_of(' '), line.size());
    const bool is_whole = line.starts_with("Example: ") || line.find(' ', text) == line.npos;
    if (!is_whole) longest = std::max(longest, line.size());
  }
  return longest;
}

TEST(Help, FitsTheTerminal) {
  for (const char* const command : {"", "train", "plan", "sweep", "bench", "bench train"}) {
    for (const char* const flag : {"--help", "--help-all"}) {
      EXPECT_LE(longest_line(succeed({command, flag}).output), 80U) << command << flag;
    }
  }
}

TEST(Documents, CompleteNetworksAndMemoryModes) {
  for (const char* shell : {"bash", "zsh"}) {
    const std::string script = run_spillway({"document", shell}).output;

    expect_parts(script, {"'train --net') choices='lenet ",
                          "'train --memory') choices='auto managed copy resident'",
                          "'bench train --net') choices='lenet "});
  }
}

// Modes are compared by changing one word of a command line.
TEST(Usage, NotesWhatAnotherMemoryModeHas) {
  const std::vector<std::string> of_moves{
      "--planner capacity", "--recompute auto",    "--state near",           "--update auto",
      "--far ram",          "--far-checksums off", "--link-bandwidth 2GB/s", "--link-latency 1us"};
  const std::vector<std::string> of_managed{"--fault-latency 1us", "--paging memfd",
                                            "--oversubscribe", "--discard on"};
  const auto expect_useless = [](const Arguments& command, const std::string& memory,
                                 const std::vector<std::string>& flags) {
    for (const std::string& flag : flags) {
      const Outcome outcome = run_spillway({command, "--memory", memory, flag.c_str()});
      EXPECT_NE(outcome.exit_code, kBadUsage) << outcome.errors;
      expect_parts(outcome.errors, {"note: " + flag.substr(0, flag.find(' ')) +
                                    " does nothing with --memory " + memory + "\n"});
    }
  };
  expect_useless(small_training(), "resident", of_moves);
  expect_useless(small_training(), "resident", of_managed);
  expect_useless(small_training(), "copy", of_managed);
  expect_useless("evaluate nowhere", "copy", of_managed);
  expect_useless("predict nowhere", "resident", of_moves);
  expect_useless("profile --net lenet --batch 2", "resident", {"--far ram", "--paging memfd"});
  expect_useless("plan --net lenet --batch 2 --machine v100", "resident",
                 {"--planner capacity", "--state far"});
  const std::string everything =
      summary_of(succeed(small_training(
                     "--memory resident --json - --planner capacity --far file:/no/where "
                     "--link-bandwidth 2GB/s --state far --update far --paging memfd")))
          .value("weights_sha256", "");
  EXPECT_EQ(
      everything,
      summary_of(small_training("--memory resident --json -")).value("weights_sha256", "none"));
  succeed(
      {"train --net lenet --batch 2 --steps 1 --memory copy --planner capacity --far ram "
       "--far-checksums off --link-latency 1us --recompute off --state near --update near"});
}

// The GPU's error depends on the machine: no CUDA build, no driver, no GPU, or none with number
// 999.
TEST(BadInput, SaysWhatCannotBe) {
  expect_refused(kFailure, small_training("--device cuda:999"), {"CUDA cannot be used: "});
  expect_refused(kFailure, "train --net gpt:1,2,16,8 --batch 2 --steps 1 --attention cudnn",
                 {"cuDNN has no attention for this", "NVIDIA GPU", "--attention cudnn"});
}

TEST(Devices, AreShownWithoutThreadsToo) {
  const Outcome outcome = succeed("devices", "OMP_THREAD_LIMIT=1");
  expect_parts(outcome.output,
               {"unified memory, userfaultfd", "transparent huge pages", "bfloat16"});
}

// The output of `spillway devices` on any machine.
// `spillway nets`: the built-in networks and their needs.

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
