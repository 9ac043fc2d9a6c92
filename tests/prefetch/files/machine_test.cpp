#include "prefetch/files/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "prefetch/files/json.h"
#include "prefetch/files/profile_file.h"
#include "tests/prefetch/toy.h"
#include "tests/prefetch/toy_files.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using nlohmann::json;
using test::refusal;

TEST(BuiltInMachines, AreFoundByTheirNamesWhichDiffer) {
  std::set<std::string> names;
  for (const Machine& machine : built_in_machines()) {
    EXPECT_EQ(find_machine(machine.name).near_memory, machine.near_memory);
    EXPECT_LE(machine.compute_efficiency, 1);
    EXPECT_LE(machine.memory_efficiency, 1);
    names.insert(machine.name);
  }
  EXPECT_EQ(names.size(), built_in_machines().size());
}

TEST(FindMachine, ListsTheNamesForAnUnknownOne) {
  const std::string sentence = refusal([] { return find_machine("tpu"); });
  EXPECT_NE(sentence.find("'tpu'"), std::string::npos);
  EXPECT_NE(sentence.find("v100, "), std::string::npos);
}

TEST(MachineOf, IsTheOneWhoseNameIsAWordOfTheDevice) {
  for (const auto& [device, machine] : {std::pair{"cuda:0 (NVIDIA H200, 141 GiB)", "h200"},
                                        {"cuda:1 (NVIDIA H100 PCIe)", "h100"},
                                        {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", "a100"},
                                        {"Tesla V100-SXM2-16GB", "v100"},
                                        {"host (AMD EPYC, 2 CPUs)", "host"},
                                        {"NVIDIA GH200 480GB", "gh200"}}) {
    const std::optional<Machine> found = machine_of(device);
    ASSERT_TRUE(found.has_value()) << device;
    EXPECT_EQ(found->name, machine) << device;
  }
  for (const char* device : {"NVIDIA RTX A1000", "NVIDIA GB10", "NVIDIA GeForce GTX 1080", ""}) {
    EXPECT_FALSE(machine_of(device).has_value()) << device;
  }
}

class MachineFile : public ::testing::Test {
 protected:
  [[nodiscard]] Machine find() const {
    write_json(file, path);
    return find_machine(path);
  }
  test::TemporaryFolder folder;
  std::string path = folder.file("machine.json");
  json file = small_machine();
};

TEST_F(MachineFile, IsRead) {
  const Machine machine = find();
  EXPECT_EQ(machine.name, "toy");
  EXPECT_EQ(machine.near_memory, 32_MiB);
  EXPECT_EQ(machine.link.prefetch.bytes_per_second(), 2e10);
  EXPECT_EQ(machine.link.latency, um::Nanoseconds{1000});
  EXPECT_TRUE(machine.link.is_duplex);
}

TEST(FindMachine, RefusesANameThatIsTooLongForAFile) {
  EXPECT_NE(refusal([] { return find_machine(std::string(5000, 'x')); }).find("no such file"),
            std::string::npos);
}

TEST(InPrecision, TakesThePeaksOfTheDataSheets) {
  for (const auto& [name, tf32, bf16] :
       {std::tuple{"a100", 156e12, 312e12}, {"h100", 494e12, 989e12}, {"h200", 494e12, 989e12}}) {
    const Machine machine = find_machine(name);
    EXPECT_EQ(in_precision(machine, "fp32").flops_per_second, machine.flops_per_second);
    EXPECT_EQ(in_precision(machine, "tf32").flops_per_second, tf32);
    EXPECT_EQ(in_precision(machine, "bf16").flops_per_second, bf16);
    EXPECT_EQ(in_precision(machine, "bf16").precision, "bf16");
  }
}

TEST(InPrecision, NamesThePrecisionsOfAMachineWithoutThisOne) {
  EXPECT_EQ(refusal([] { return in_precision(find_machine("v100"), "bf16"); }),
            "the machine 'v100' has no peak rate in bf16, only in fp32");
}

TEST_F(MachineFile, MayHavePeaksOfTensorCores) {
  EXPECT_EQ(find().bf16_flops_per_second, std::nullopt);  // older files have none
  file["bf16_flops_per_second"] = 4e9;
  EXPECT_EQ(refusal([&] { return in_precision(find(), "tf32"); }),
            "the machine 'toy' has no peak rate in tf32, only in fp32 and bf16");
  // 4e9 flops/s at one half: 1000 flops take 500 ns.
  TaskGraph graph;
  graph.add(Task{.name = "flops", .flops = 1000});
  const Profile profile = model_profile(graph, in_precision(find(), "bf16"));
  EXPECT_EQ(profile.durations[0], std::vector{um::Nanoseconds{500}});
  EXPECT_EQ(profile.source, "model toy, bf16");
  file["bf16_flops_per_second"] = 1;
  EXPECT_EQ(refusal([&] { return find(); }), path + ": bf16_flops_per_second is smaller than 1000");
}

TEST_F(MachineFile, ModelsNoTimeLongerThanTheLongest) {
  file["flops_per_second"] = 1000;
  file["compute_efficiency"] = 0.001;
  TaskGraph graph;  // 1e300 flops at one per second: longer than the longest time
  graph.add(Task{.name = "endless", .flops = 1e300});
  EXPECT_EQ(model_profile(graph, find()).durations[0][0], um::Nanoseconds{kLongestDuration});
  // The sum of 20,000 times of eleven days must not overflow either.
  while (graph.tasks.size() < 20'000) graph.add(Task{.name = "another", .flops = 1e300});
  const Profile profile = model_profile(graph, find());
  EXPECT_GT(compute_time(profile, runs_in_order(graph)), um::Nanoseconds{1LL << 59});
  const json written = to_json(profile, graph);
  EXPECT_EQ(read_profile(JsonFile{written.dump(), "p"}, graph).durations, profile.durations);
}

TEST_F(MachineFile, ModelsTheLargerOfArithmeticAndMemoryTime) {
  // 1e9 flops/s at one half: 1000 flops take 2000 ns. 1e9 bytes/s: 3000 bytes take 3000 ns. The
  // second algorithm takes 0.55 of the first.
  TaskGraph graph;
  graph.add(Task{.name = "flops", .algorithms = {{"a"}, {"b"}}, .flops = 1000, .traffic = 10_B});
  graph.add(Task{.name = "bytes", .flops = 1000, .traffic = 3000_B});
  const Profile profile = model_profile(graph, find());
  EXPECT_EQ(profile.durations[0], (std::vector{um::Nanoseconds{2000}, um::Nanoseconds{1100}}));
  EXPECT_EQ(profile.durations[1], std::vector{um::Nanoseconds{3000}});
  EXPECT_EQ(profile.source, "model toy");
  EXPECT_EQ(profile.graph, fingerprint(graph));
}

}  // namespace
}  // namespace spillway::prefetch
