#include "um/cuda/cuda_device.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/um/cuda/recording_api.h"
#include "tests/um/device_contract.h"
#include "um/cuda/copy_space.h"
#include "um/cuda/driver/capabilities.h"
#include "um/cuda/driver/runtime_api.h"
#include "um/cuda/managed/cuda_managed_memory.h"
#include "um/error.h"
#include "um/machine/available_memory.h"

namespace spillway::um {
namespace {

DeviceMaker recorded_maker() {
  const auto gpu = std::make_shared<RecordedGpu*>();  // of the most recently opened device
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
  for (const char* name :
       {"tf32", "bf16", "managed", "discard", "pageable", "duplex", "link", "counters"}) {
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

// Its free memory is not what the driver says, which counts the page cache as used.
TEST(CudaDevice, OfAnIntegratedGpuHasTheRam) {
  CudaFacts facts = RecordingApi::h200();
  facts.is_integrated = true;
  facts.memory = 1_GiB;
  auto api = std::make_unique<RecordingApi>(facts);
  api->set_free(1_MiB);
  const CudaDevice device{std::move(api), {}};
  if (usable_memory() < 1_GiB) GTEST_SKIP() << "this machine has too little memory";
  EXPECT_EQ(device.available_memory(), 1_GiB - kManagedMargin - CudaFileSpace::kPinned);
  EXPECT_TRUE(device.memory_facts().is_host_ram);
  EXPECT_FALSE(device.memory_facts().moves_by_hints);
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

// A driver with the minimum alignment that it promises: 256 bytes.
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
  EXPECT_EQ(api.live_objects(), 1U);  // the 4 MiB that are still allocated
}

using Log = std::vector<std::string>;

// Near memory of 32 MiB, far memory of 8 MiB.
class CudaCopySpaceTest : public ::testing::Test {
 protected:
  CudaCopySpaceTest() { static_cast<void>(api.take_log()); }
  ~CudaCopySpaceTest() override { api.let_go(); }

  [[nodiscard]] Completion into(std::promise<std::exception_ptr>& ended) {
    return [&](std::exception_ptr failure) { ended.set_value(std::move(failure)); };
  }
  void fill_near() {
    unsigned value = 0;
    for (std::byte& each : space.near()) {
      value = (value * 5 + 7) % 251;
      each = static_cast<std::byte>(value);
    }
  }

  RecordingApi api;
  DeviceMemory device{api};
  PinnedMemory pinned{api};
  CudaCopySpace space{api, device, pinned, {.size = 8_MiB, .near = 32_MiB}};
};

TEST_F(CudaCopySpaceTest, CopiesOnAStreamForEachDirectionAndEndsWhenTheEventHasFired) {
  api.hold();
  std::promise<std::exception_ptr> out;
  std::promise<std::exception_ptr> in;
  space.copies().offload(space.near().first(2U << 20U), 2_MiB, into(out));
  api.wait_until_noted("copy out: record");
  space.copies().prefetch(4_MiB, space.near().subspan(4U << 20U, 4096), into(in));
  api.wait_until_noted("copy in: record");
  EXPECT_EQ(api.take_log(), (Log{"copy out: copy device 0+1 to pinned 1", "copy out: record",
                                 "copy in: copy pinned 2+4096 B to device 2", "copy in: record"}));
  EXPECT_EQ(space.counters().bytes_offloaded, 0_B);
  api.finish("copy in");
  EXPECT_EQ(in.get_future().get(), nullptr);
  api.finish("copy out");
  EXPECT_EQ(out.get_future().get(), nullptr);
}

TEST_F(CudaCopySpaceTest, TellsTheCompletionWhenACopyFails) {
  api.fail("copy out", cudaErrorInvalidValue);
  std::promise<std::exception_ptr> out;
  space.copies().offload(space.near().first(4096), 0_MiB, into(out));
  EXPECT_THROW(std::rethrow_exception(out.get_future().get()), CudaError);
  EXPECT_EQ(space.counters().bytes_offloaded, 0_B);
}

TEST_F(CudaCopySpaceTest, SlidesByLittleWithADetourAndByMuchWithout) {
  const Range spare = space.near().last(2U << 20U);
  for (const std::size_t distance : {std::size_t{4096}, std::size_t{10} << 20U}) {
    fill_near();
    const std::vector<std::byte> before(space.near().begin(), space.near().end());
    static_cast<void>(api.take_log());
    const std::size_t size = 20U << 20U;
    space.copies().slide(space.near().subspan(distance, size), space.near().data(), spare);
    EXPECT_TRUE(std::equal(before.begin() + static_cast<std::ptrdiff_t>(distance),
                           before.begin() + static_cast<std::ptrdiff_t>(distance + size),
                           space.near().begin()));
    api.touch(space.near(), Access::kWrite);  // the copies have ended
    // 10 copies of 2 MiB, each twice; or 10 + 10 MiB.
    EXPECT_EQ(api.take_log().size(), distance == 4096 ? 20U : 2U);
  }
}

TEST_F(CudaCopySpaceTest, SlidesByTheDistanceWhereNothingIsSpare) {
  fill_near();
  const std::vector<std::byte> before(space.near().begin(), space.near().end());
  static_cast<void>(api.take_log());
  space.copies().slide(space.near().subspan(4096, 10240), space.near().data(), {});
  EXPECT_TRUE(
      std::equal(before.begin() + 4096, before.begin() + 4096 + 10240, space.near().begin()));
  EXPECT_EQ(api.take_log().size(), 3U);  // 4096 + 4096 + 2048 bytes
}

// The error comes after the pieces before the failed one have ended.
TEST(CudaCopySpace, ASlideThatFailsHalfwayEndsBeforeTheMemoryGoes) {
  RecordingApi api;
  DeviceMemory device{api};
  PinnedMemory pinned{api};
  CudaCopySpace space{api, device, pinned, {.size = 2_MiB, .near = 8_MiB}};
  api.fail("copy slide: copy device 2+1", cudaErrorInvalidValue);
  EXPECT_THROW(space.copies().slide(space.near().subspan((2_MiB).count(), (4_MiB).count()),
                                    space.near().data(), {}),
               CudaError);
}

TEST_F(CudaCopySpaceTest, TakesNoMoreNearMemoryThanWasAskedFor) {
  CudaCopySpace{api, device, pinned, {.size = 8_MiB, .near = 32_MiB}};
  const Log log = api.take_log();
  EXPECT_EQ(std::ranges::count(log, "allocate device 32.0 MiB"), 1);
  EXPECT_EQ(std::ranges::count_if(
                log, [](const std::string& line) { return line.starts_with("allocate device"); }),
            1);
}

// A driver that copies as late as possible: when a thread waits for the stream.
class LateCopies final : public RecordingApi {
 public:
  using RecordingApi::synchronize;

  void copy(std::span<const std::byte> from, std::byte* to, cudaStream_t stream) override {
    const std::lock_guard lock{mutex_};
    copies_[stream].emplace_back(from, to);
  }
  void synchronize(cudaStream_t stream) override {
    std::vector<std::pair<std::span<const std::byte>, std::byte*>> ready;
    {
      const std::lock_guard lock{mutex_};
      ready = std::exchange(copies_[stream], {});
    }
    for (const auto& [from, to] : ready) RecordingApi::copy(from, to, stream);
    RecordingApi::synchronize(stream);
  }

 private:
  std::mutex mutex_;
  std::map<cudaStream_t, std::vector<std::pair<std::span<const std::byte>, std::byte*>>> copies_;
};

// Far memory of 24 MiB in a file; near memory is as large.
class CudaFileSpaceTest : public ::testing::Test {
 protected:
  CudaFileSpaceTest() {
    for (std::size_t i = 0; i < space.near().size(); ++i) {
      space.near()[i] = static_cast<std::byte>(i / 4096 * 7 + i % 251);
    }
    static_cast<void>(api.take_log());
  }

  [[nodiscard]] std::exception_ptr offload(Bytes from, Bytes size, Bytes to) {
    std::promise<std::exception_ptr> ended;
    space.copies().offload(space.near().subspan(from.count(), size.count()), to,
                           [&](std::exception_ptr failure) { ended.set_value(failure); });
    return ended.get_future().get();
  }
  [[nodiscard]] std::exception_ptr prefetch(Bytes from, Bytes size, Bytes to) {
    std::promise<std::exception_ptr> ended;
    space.copies().prefetch(from, space.near().subspan(to.count(), size.count()),
                            [&](std::exception_ptr failure) { ended.set_value(failure); });
    return ended.get_future().get();
  }

  test::TemporaryFolder folder;
  LateCopies api;
  DeviceMemory device{api};
  PinnedMemory pinned{api};
  CudaFileSpace space{
      api, device, pinned, {.size = 24_MiB, .near = 24_MiB, .far = {.file = folder.path()}}};
};

// 17 MiB and a page are three pieces; they come back to another place, which overlaps the first.
TEST_F(CudaFileSpaceTest, BringsBackWhatItWrote) {
  const Bytes size = 17_MiB + 4_KiB;
  const std::vector<std::byte> before(space.near().begin(), space.near().end());
  EXPECT_EQ(offload(6_MiB, size, 4_MiB), nullptr);
  std::ranges::fill(space.near(), std::byte{0});
  EXPECT_EQ(prefetch(4_MiB, size, 4_KiB), nullptr);
  const auto begin = before.begin() + static_cast<std::ptrdiff_t>((6_MiB).count());
  EXPECT_TRUE(std::equal(begin, begin + static_cast<std::ptrdiff_t>(size.count()),
                         space.near().begin() + 4096));
  EXPECT_EQ(space.near().front(), std::byte{0});
  EXPECT_EQ(space.counters().bytes_offloaded, size);
  EXPECT_EQ(space.counters().bytes_prefetched, size);
  EXPECT_EQ(space.description().find("far file in "), 0U) << space.description();
}

// The processor beside far memory sees the same bytes.
TEST_F(CudaFileSpaceTest, HasAFarSide) {
  const std::vector<std::byte> before(space.near().begin(), space.near().begin() + 4096);
  EXPECT_EQ(offload(0_MiB, 4_KiB, 8_KiB), nullptr);
  const Block page{pinned, 4_KiB};
  space.copies().far_side()->read(8_KiB, page.bytes());
  EXPECT_TRUE(std::ranges::equal(page.bytes(), before));
  EXPECT_TRUE(space.copies().far().empty());  // no device can copy from its addresses
}

TEST_F(CudaFileSpaceTest, TellsTheCompletionWhenACopyFails) {
  api.fail("file out", cudaErrorInvalidValue);
  EXPECT_THROW(std::rethrow_exception(offload(0_MiB, 4_KiB, 0_MiB)), CudaError);
  EXPECT_EQ(space.counters().bytes_offloaded, 0_B);
}

TEST_F(CudaFileSpaceTest, PinsWhatAnIntegratedGpuLeavesForIt) {
  CudaFileSpace{
      api, device, pinned, {.size = 1_MiB, .near = 1_MiB, .far = {.file = folder.path()}}};
  const Log log = api.take_log();
  EXPECT_EQ(std::ranges::count(log, "allocate pinned " + to_string(CudaFileSpace::kPiece)), 4);
  EXPECT_EQ(CudaFileSpace::kPinned, 4 * CudaFileSpace::kPiece);
}

}  // namespace
}  // namespace spillway::um
