#include "src/bench/bench_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "prefetch/files/json.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

const BenchMachine kHere{.processor = "Abacus 3000", .device = "host"};
const BenchMachine kThere{.processor = "Abacus 3001", .device = "host"};

class BenchFilePath : public testing::Test {
 protected:
  void write(const std::string& bench, const BenchMachine& machine) const {
    prefetch::write_json(to_json(BenchFile{.bench = bench, .machine = machine}), path_);
  }
  void expect_refused(const std::string& bench, const std::string& word) const {
    const std::string sentence = refusal([&] { expect_replaceable(path_, bench, kHere); });
    EXPECT_NE(sentence.find(word), std::string::npos) << sentence;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() / "bench.json";
};

TEST_F(BenchFilePath, MayBeReplacedByTheSameBenchOnTheSameMachine) {
  EXPECT_NO_THROW(expect_replaceable(path_, "link", kHere));
  write("link", kHere);
  EXPECT_NO_THROW(expect_replaceable(path_, "link", kHere));
}

TEST_F(BenchFilePath, OfAnotherMachineIsNotReplaced) {
  write("link", kThere);
  expect_refused("link", "another machine");
}

TEST_F(BenchFilePath, OfAnotherBenchIsNotReplaced) {
  write("paging", kHere);
  expect_refused("link", "bench paging");
}

TEST_F(BenchFilePath, OfTheVersionBeforeIsNotReplacedEither) {
  nlohmann::json old = to_json(BenchFile{.bench = "link", .machine = kThere});
  old["version"] = 1;
  prefetch::write_json(old, path_);
  expect_refused("link", "another machine");
}

TEST(BenchFileJson, HasTheFieldsOfTheFormat) {
  // 2026-11-22 11:00:00 UTC is 1795345200 seconds after the beginning of 1970.
  const BenchFile file{.bench = "link",
                       .begin = std::chrono::system_clock::from_time_t(1'795'345'200),
                       .took = Seconds{1.5},
                       .machine = kHere,
                       .options = {{"far", "ram"}},
                       .rows = {1, 2}};
  const nlohmann::json json = to_json(file);

  EXPECT_EQ(json.at("format"), "spillway-bench");
  EXPECT_EQ(json.at("version"), 2);
  EXPECT_EQ(json.at("bench"), "link");
  EXPECT_EQ(json.at("date"), "2026-11-22T11:00:00Z");
  EXPECT_EQ(json.at("seconds"), 1.5);
  EXPECT_EQ(json.at("machine").at("id"), kHere.id());
  EXPECT_EQ(json.at("options"), (nlohmann::json{{"far", "ram"}}));
  EXPECT_EQ(json.at("rows"), nlohmann::json::array({1, 2}));
  EXPECT_TRUE(json.at("build").at("version").is_string());
  EXPECT_TRUE(json.at("build").contains("commit"));
}

}  // namespace
}  // namespace spillway::test

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
