#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "src/bench/bench_file.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

const BenchMachine kMachine{.processor = "Abacus 3000",
                            .processors = 2,
                            .memory = um::Bytes{1024},
                            .kernel = "6.18",
                            .device = "host",
                            .paging = "uffd",
                            .load = 0.5};

TEST(BenchMachine, HasAnIdOfItsFixedFacts) {
  EXPECT_EQ(kMachine.id().size(), 12U);
  EXPECT_EQ(kMachine.id().find_first_not_of("0123456789abcdef"), std::string::npos);

  BenchMachine busier = kMachine;
  busier.load = 7;
  busier.paging = "memfd";
  EXPECT_EQ(busier.id(), kMachine.id());
}

TEST(BenchMachine, HasAnotherIdWhereAnyFixedFactIsAnother) {
  const auto expect_another = [](const auto& change) {
    BenchMachine other = kMachine;
    change(other);
    EXPECT_NE(other.id(), kMachine.id());
  };
  expect_another([](BenchMachine& machine) { machine.processor = "Abacus 3001"; });
  expect_another([](BenchMachine& machine) { machine.processors = 3; });
  expect_another([](BenchMachine& machine) { machine.memory = um::Bytes{2048}; });
  expect_another([](BenchMachine& machine) { machine.kernel = "6.19"; });
  expect_another([](BenchMachine& machine) { machine.device = "cuda:0 Loom"; });
}

TEST(BenchMachine, IsReadFromProc) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "proc");
  std::ofstream{folder.path() / "proc/cpuinfo"} << "processor\t: 0\nmodel name\t: Abacus 3000\n";
  std::ofstream{folder.path() / "proc/meminfo"} << "MemTotal:        3 kB\nMemFree:  1 kB\n";
  std::ofstream{folder.path() / "proc/loadavg"} << "0.25 0.10 0.05 1/100 7\n";

  const BenchMachine machine = find_bench_machine("host", "memfd", folder.path());

  EXPECT_EQ(machine.processor, "Abacus 3000");
  EXPECT_EQ(machine.memory, um::Bytes{3072});
  EXPECT_EQ(machine.load, 0.25);
  EXPECT_GE(machine.processors, 1U);
  EXPECT_FALSE(machine.kernel.empty());
}

TEST(BenchMachine, WithoutProcIsUnknown) {
  const test::TemporaryFolder folder;

  EXPECT_EQ(find_bench_machine("host", {}, folder.path()).processor, "unknown processor");
}

TEST(BenchMachineJson, HasTheFieldsOfTheFormat) {
  EXPECT_EQ(to_json(kMachine), (nlohmann::json{{"id", kMachine.id()},
                                               {"processor", "Abacus 3000"},
                                               {"processors", 2},
                                               {"memory_bytes", 1024},
                                               {"kernel", "6.18"},
                                               {"device", "host"},
                                               {"paging", "uffd"},
                                               {"load_at_start", 0.5}}));
  BenchMachine gpu = kMachine;
  gpu.paging = std::nullopt;
  EXPECT_TRUE(to_json(gpu).at("paging").is_null());
}

}  // namespace
}  // namespace spillway
