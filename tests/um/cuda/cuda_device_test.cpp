#include "um/cuda/cuda_device.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/temporary_folder.h"
#include "tests/um/cuda/recording_api.h"
#include "tests/um/device_contract.h"
#include "um/cuda/driver/capabilities.h"
#include "um/cuda/driver/runtime_api.h"
#include "um/cuda/managed/cuda_managed_memory.h"
#include "um/error.h"

namespace spillway::um {
namespace {

DeviceMaker recorded_maker() {
  const auto gpu = std::make_shared<RecordedGpu*>();  // of the device opened last
  return {.kind = "Cuda",
          .open =
              [gpu] {
                auto api = std::make_unique<RecordingApi>();
                *gpu = api.get();
                return std::make_unique<CudaDevice>(std::move(api), CudaOptions{});
              },
          .write =
              [gpu](std::span<const std::byte> bytes, std::byte* near) {
                (*gpu)->synchronize_all();  // only compute streams wait for near memory
                (*gpu)->touch({near, bytes.size()}, Access::kWrite);
                std::ranges::copy(bytes, near);
              }};
}

INSTANTIATE_TEST_SUITE_P(Recorded, DeviceContract, ::testing::Values(recorded_maker()),
                         device_kind);

constexpr DriverAnswer answer(cudaError_t status, int devices, int driver = 13000) {
  return {.status = status,
          .status_text = "initialization error",
          .devices = devices,
          .driver_version = driver,
          .runtime_version = 13000};
}

std::string reason(const DriverAnswer& given, int ordinal = 0) {
  return why_unusable(given, ordinal).value_or("usable");
}

TEST(Usability, SaysWhatIsMissingAndWhatToDo) {
  EXPECT_EQ(reason(answer(cudaErrorInsufficientDriver, 0, 0)),
            "there is no NVIDIA driver on this machine; install one, or use --device host");
  EXPECT_EQ(reason(answer(cudaErrorInsufficientDriver, 0, 12020)),
            "the NVIDIA driver is too old: it knows CUDA 12.2 and this program needs 13.0; update "
            "it, or use --device host");
  EXPECT_EQ(reason(answer(cudaErrorNoDevice, 0)),
            "the NVIDIA driver finds no GPU; look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use "
            "--device host");
  EXPECT_EQ(reason(answer(cudaErrorInitializationError, 0)),
            "the GPU does not answer (initialization error); look at nvidia-smi, or use --device "
            "host");
  EXPECT_EQ(reason(answer(cudaSuccess, 2), 2), "there is no cuda:2; the GPUs are cuda:0 to cuda:1");
  EXPECT_EQ(reason(answer(cudaSuccess, 2), 1), "usable");
}

TEST(Usability, OfThisMachineIsWhatOpeningSays) {
  const auto why = why_unusable(ask_driver(), 0);
  if (!why) GTEST_SKIP() << "this machine has a GPU";
  try {
    static_cast<void>(open_cuda(0));
    FAIL() << "opened a GPU that cannot be used";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), *why);
  }
}

const Capability& find(const std::vector<Capability>& all, const std::string& name) {
  return *std::ranges::find(all, name, &Capability::name);
}

TEST(Capabilities, SayWhatThereIs) {
  const auto all = describe(RecordingApi::h200(), "32.0 GT/s PCIe x16", std::nullopt);
  for (const Capability& each : all) {
    EXPECT_TRUE(each.available) << each.name;
    EXPECT_FALSE(each.comment.empty()) << each.name;
  }
  EXPECT_EQ(find(all, "cuda").comment, "driver for CUDA 13.0, built with 13.0");
  EXPECT_EQ(find(all, "link").comment, "32.0 GT/s PCIe x16");
  EXPECT_EQ(find(all, "duplex").comment, "3 copy engines: both ways at once");
}

TEST(Capabilities, SayWhyNotMore) {
  const CudaFacts nothing{.driver_version = 12040, .copy_engines = 1, .pci_bus = "0000:1B:00.0"};
  const auto all = describe(nothing, std::nullopt, "libcupti was not found");
  for (const char* name : {"managed", "discard", "pageable", "duplex", "link", "counters"}) {
    EXPECT_FALSE(find(all, name).available) << name;
    EXPECT_FALSE(find(all, name).comment.empty()) << name;
  }
}

TEST(PcieLink, IsReadFromLinux) {
  const test::TemporaryFolder folder;
  const auto device = folder.path() / "0000:1b:00.0";
  std::filesystem::create_directories(device);
  EXPECT_EQ(pcie_link("0000:1B:00.0", folder.path()), std::nullopt);
  std::ofstream{device / "current_link_speed"} << "2.5 GT/s PCIe\n";
  std::ofstream{device / "current_link_width"} << "16\n";
  EXPECT_EQ(pcie_link("0000:1B:00.0", folder.path()), "2.5 GT/s PCIe x16");
  std::ofstream{device / "max_link_speed"} << "32.0 GT/s PCIe\n";
  std::ofstream{device / "max_link_width"} << "16\n";
  EXPECT_EQ(pcie_link("0000:1B:00.0", folder.path()), "2.5 GT/s PCIe x16 (of 32.0 GT/s PCIe x16)");
}

TEST(CudaDevice, NamesItselfAndLeavesTheMarginAlone) {
  auto api = std::make_unique<RecordingApi>();
  api->set_free(100_GiB);
  const CudaDevice device{std::move(api), {}};
  EXPECT_EQ(device.name(), "cuda:0 (NVIDIA H200, 141 GiB)");
  EXPECT_EQ(device.available_memory(), 100_GiB - kManagedMargin);
}

TEST(CudaDevice, MakesWhatAStepNeeds) {
  auto owned = std::make_unique<RecordingApi>();
  RecordingApi& api = *owned;
  CudaDevice device{std::move(owned), {.managed_limit = 8_MiB}};
  const Block block{device.memory(), 1_MiB};
  const auto stream = device.make_stream("compute");
  Ledger ledger{4_MiB};
  const auto space =
      device.make_managed_space({.size = 8_MiB, .near = 4_MiB, .page = 2_MiB}, ledger);
  static_cast<void>(api.take_log());
  space->hints().populate(space->slab().first((2_MiB).count()));
  EXPECT_EQ(api.take_log().back(), "compute: wait for um upkeep");
  EXPECT_THROW(static_cast<void>(device.make_managed_space(
                   {.size = 2_MiB, .near = 2_MiB, .page = 2_MiB}, ledger)),
               Error);
  EXPECT_EQ(space->description(), "CUDA, 2 MiB pages, no discards");
}

// A driver that aligns as little as it promises: 256 bytes.
class OddApi final : public RecordingApi {
 public:
  [[nodiscard]] std::byte* allocate_device(Bytes size) override {
    return RecordingApi::allocate_device(size + 256_B) + 256;
  }
  void free_device(std::byte* address) noexcept override {
    RecordingApi::free_device(address - 256);
  }
};

TEST(DeviceMemory, IsAlignedEvenWhereTheDriversIsNot) {
  OddApi api;
  DeviceMemory memory{api};
  std::byte* const address = memory.allocate(100_B);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % 4096, 0U);
  EXPECT_EQ(api.live_objects(), 1U);
  memory.free(address, 100_B);
  EXPECT_EQ(api.live_objects(), 0U);
}

TEST(PinnedMemory, KeepsWhatIsFreedForTheNextOfItsSize) {
  RecordingApi api;
  {
    PinnedMemory memory{api};
    std::byte* const first = memory.allocate(2_MiB);
    memory.free(first, 2_MiB);
    EXPECT_NE(memory.allocate(4_MiB), nullptr);
    EXPECT_EQ(memory.allocate(2_MiB), first);
    EXPECT_EQ(api.take_log(),
              (std::vector<std::string>{"allocate pinned 2.00 MiB", "allocate pinned 4.00 MiB"}));
    memory.free(first, 2_MiB);
  }
  EXPECT_EQ(api.live_objects(), 1U);  // the 4 MiB, which nobody has freed
}

}  // namespace
}  // namespace spillway::um
