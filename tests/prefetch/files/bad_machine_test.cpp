#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "tests/prefetch/small_machine.h"
#include "tests/prefetch/tampered.h"
#include "tests/refusal.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using test::refusal;

constexpr std::array kTamperings{
    Tampering{"/format", "\"machine\"", "format is 'machine', not 'spillway-machine'"},
    Tampering{"/format", "", "format is missing"},
    Tampering{"/version", "0", "version is 0; this program reads version 1"},
    Tampering{"/version", "\"1\"", "version is no whole number from 0 up"},
    Tampering{"/name", "", "name is missing"},
    Tampering{"/name", "3", "name is no string"},
    Tampering{"/near_memory_bytes", "", "near_memory_bytes is missing"},
    Tampering{"/near_memory_bytes", "-4096", "near_memory_bytes is no whole number from 0 up"},
    Tampering{"/near_memory_bytes", "1e12", "near_memory_bytes is no whole number from 0 up"},
    Tampering{"/flops_per_second", "", "flops_per_second is missing"},
    Tampering{"/flops_per_second", "0", "flops_per_second is zero"},
    Tampering{"/flops_per_second", "-1e12", "flops_per_second is negative or too large"},
    Tampering{"/flops_per_second", "999", "flops_per_second is smaller than 1000"},
    Tampering{"/compute_efficiency", "2", "compute_efficiency is larger than 1"},
    Tampering{"/compute_efficiency", "0", "compute_efficiency is zero"},
    Tampering{"/compute_efficiency", "0.0001", "compute_efficiency is smaller than 0.001"},
    Tampering{"/memory_bytes_per_second", "\"fast\"", "memory_bytes_per_second is no number"},
    Tampering{"/memory_bytes_per_second", "1e-300", "memory_bytes_per_second is smaller than 1000"},
    Tampering{"/memory_efficiency", "null", "memory_efficiency is no number"},
    Tampering{"/link", "", "link is missing"},
    Tampering{"/link", "[]", "link is no object"},
    Tampering{"/link/offload_bytes_per_second", "", "link.offload_bytes_per_second is missing"},
    Tampering{"/link/prefetch_bytes_per_second", "0", "link.prefetch_bytes_per_second is zero"},
    Tampering{"/link/latency_ns", "1.5", "link.latency_ns is no whole number from 0 up"},
    Tampering{"/link/latency_ns", "1000000000000001",
              "link.latency_ns is larger than 1000000000000000"},
    Tampering{"/link/duplex", "1", "link.duplex is neither true nor false"},
    Tampering{"/link/compute_speed_while_moving", "0", "link.compute_speed_while_moving is zero"},
    Tampering{"/link/fault_ns", "-1", "link.fault_ns is no whole number from 0 up"},
};

class BadMachine : public ::testing::Test {
 protected:
  ~BadMachine() override { std::filesystem::remove(path); }
  [[nodiscard]] std::string complaint(const nlohmann::json& file) const {
    write_json(file, path);
    return refusal([&] { return find_machine(path); });
  }
  std::string path = ::testing::TempDir() + "spillway-bad-machine-" + std::to_string(getpid());
};

TEST_F(BadMachine, IsRefusedWithThePlaceOfWhatIsWrong) {
  EXPECT_EQ(complaint(small_machine()), "accepted");
  for (const Tampering& tampering : kTamperings) {
    EXPECT_EQ(complaint(tampered(small_machine(), tampering)), path + ": " + tampering.sentence)
        << tampering.place << " = " << tampering.value;
  }
}

TEST_F(BadMachine, IsRefusedWhenItIsNoFileOfText) {
  std::ofstream{path} << "name: toy";
  EXPECT_EQ(refusal([&] { return find_machine(path); }), path + ": not JSON, at byte 2");
  EXPECT_EQ(refusal([&] { return find_machine("/dev/zero"); }), "/dev/zero is larger than 256 MiB");
}

}  // namespace
}  // namespace spillway::prefetch
