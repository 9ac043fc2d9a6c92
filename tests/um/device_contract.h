#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "um/device.h"
#include "um/error.h"

// The contract of every device. A test instantiates it with a way to open the device.

namespace spillway::um {

/// Opens devices of one kind.
struct DeviceMaker {
  std::string kind;
  std::function<std::unique_ptr<Device>()> open;
  /// Writes to near memory and waits.
  std::function<void(std::span<const std::byte> bytes, std::byte* near)> write;
  /// Skips or fails the test if the device does not exist.
  std::function<void()> require = [] {};
};

// Gtest requires this name.
// NOLINTNEXTLINE(readability-identifier-naming)
inline void PrintTo(const DeviceMaker& maker, std::ostream* out) { *out << maker.kind; }

inline std::string device_kind(const ::testing::TestParamInfo<DeviceMaker>& info) {
  return info.param.kind;
}

/// A slab of four pages of 2 MiB with room for two near.
class DeviceContract : public ::testing::TestWithParam<DeviceMaker> {
 protected:
  using Bits = std::vector<std::byte>;

  void SetUp() override {
    GetParam().require();
    if (IsSkipped() || HasFatalFailure()) return;
    device = GetParam().open();
    stream = device->make_stream("test");
  }

  [[nodiscard]] static Bits pattern(std::size_t size, unsigned seed) {
    Bits bits(size);
    unsigned value = seed;
    for (std::byte& each : bits) {
      value = (value * 1103515245 + 12345) % 2147483648U;
      each = static_cast<std::byte>(value >> 16U);
    }
    return bits;
  }
  void write(const Bits& bits, std::byte* near) const { GetParam().write(bits, near); }
  [[nodiscard]] Bits read(std::span<const std::byte> near) {
    Bits bits(near.size());
    stream->enqueue([&] { stream->read(near, bits); });
    stream->synchronize();
    return bits;
  }
  void make_managed() {
    managed = device->make_managed_space({.size = 8_MiB, .near = 4_MiB, .page = 2_MiB}, ledger);
  }
  [[nodiscard]] Range page(std::size_t first, std::size_t count = 1) {
    return managed->slab().subspan(first * kPage, count * kPage);
  }
  // Populates a page and writes it as a launch does.
  void make_page(std::size_t index, const Bits& bits) {
    managed->hints().populate(page(index));
    const Use use{.range = page(index), .access = Access::kWrite};
    managed->hints().begin_use({&use, 1});
    write(bits, page(index).data());
    managed->hints().end_use({&use, 1});
  }
  [[nodiscard]] std::exception_ptr move(Range range, MemoryTier tier) {
    std::promise<std::exception_ptr> ended;
    managed->hints().prefetch(
        range, tier, [&](std::exception_ptr failure) { ended.set_value(std::move(failure)); });
    return ended.get_future().get();
  }

  static constexpr std::size_t kPage = 2U << 20U;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  Ledger ledger{4_MiB};
  std::unique_ptr<ManagedSpace> managed;
};

TEST_P(DeviceContract, MemoryIsAlignedAndKeepsWhatIsWritten) {
  const Block block{device->memory(), 100_KiB};
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % 4096, 0U);
  const Bits bits = pattern(block.size().count(), 1);
  write(bits, block.data());
  EXPECT_EQ(read(block.bytes()), bits);
}

TEST_P(DeviceContract, ManagedContentComesBackAsItLeft) {
  make_managed();
  const Bits bits = pattern(kPage, 2);
  make_page(1, bits);
  EXPECT_EQ(ledger.in_use(), 2_MiB);
  EXPECT_EQ(move(page(1), MemoryTier::kFar), nullptr);
  EXPECT_EQ(ledger.in_use(), 0_MiB);
  EXPECT_EQ(move(page(1), MemoryTier::kNear), nullptr);
  EXPECT_EQ(ledger.in_use(), 2_MiB);
  EXPECT_EQ(read(page(1)), bits);
  EXPECT_EQ(managed->counters().bytes_offloaded, 2_MiB);
  EXPECT_EQ(managed->counters().bytes_prefetched, 2_MiB);
}

TEST_P(DeviceContract, ADiscardedPageMayBeWrittenAgain) {
  make_managed();
  make_page(0, pattern(kPage, 3));
  managed->hints().discard(page(0));
  EXPECT_EQ(ledger.in_use(), 0_MiB);
  const Bits bits = pattern(kPage, 4);
  make_page(0, bits);
  EXPECT_EQ(read(page(0)), bits);
}

TEST_P(DeviceContract, MorePagesThanNearMemoryTakeTurns) {
  make_managed();
  for (unsigned index = 0; index < 4; ++index) {
    make_page(index, pattern(kPage, index));
    EXPECT_EQ(move(page(index), MemoryTier::kFar), nullptr);
  }
  for (unsigned index = 0; index < 4; ++index) {
    EXPECT_EQ(move(page(index), MemoryTier::kNear), nullptr);
    EXPECT_EQ(read(page(index)), pattern(kPage, index));
    managed->hints().discard(page(index));
  }
  EXPECT_LE(ledger.peak(), 4_MiB);
}

TEST_P(DeviceContract, MovesOfOneDirectionEndInTheOrderOfTheirIssueAndAllAtTheSpacesEnd) {
  make_managed();
  for (unsigned index = 0; index < 2; ++index) make_page(index, pattern(kPage, index));
  std::vector<int> ended;
  for (int move = 0; move < 8; ++move) {  // the large one first
    managed->hints().prefetch(page(0, move == 0 ? 2 : 1), MemoryTier::kFar,
                              [&, move](const std::exception_ptr&) { ended.push_back(move); });
  }
  managed.reset();
  EXPECT_EQ(ended, (std::vector{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_P(DeviceContract, CopiesOfOneDirectionEndInTheOrderOfTheirIssueAndAllAtTheSpacesEnd) {
  auto space = device->make_copy_space({.size = 4_MiB, .near = 8_MiB});
  std::vector<int> ended;
  for (int copy = 0; copy < 8; ++copy) {
    space->copies().offload(space->near().first(copy % 2 == 0 ? 4U << 20U : 4096U), 0_B,
                            [&, copy](const std::exception_ptr&) { ended.push_back(copy); });
  }
  space.reset();
  EXPECT_EQ(ended, (std::vector{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_P(DeviceContract, RefusesACopyBeyondFarMemory) {
  const auto space = device->make_copy_space({.size = 4_MiB, .near = 8_MiB});
  EXPECT_THROW(space->copies().prefetch(4_MiB, space->near().first(4096), {}), ContractError);
  EXPECT_THROW(space->copies().offload(space->near().first(512), 0_B, {}), ContractError);
}

TEST_P(DeviceContract, CopiedContentComesBackAsItLeftAndSlides) {
  const auto space = device->make_copy_space({.size = 4_MiB, .near = 8_MiB});
  const Bits bits = pattern(kPage, 5);
  write(bits, space->near().data());
  const auto copy = [&](const auto& start) {
    std::promise<std::exception_ptr> ended;
    start([&](std::exception_ptr failure) { ended.set_value(std::move(failure)); });
    return ended.get_future().get();
  };
  EXPECT_EQ(copy([&](Completion done) {
              space->copies().offload(space->near().first(kPage), 2_MiB, std::move(done));
            }),
            nullptr);
  EXPECT_EQ(space->counters().bytes_offloaded, 2_MiB);
  EXPECT_EQ(space->counters().bytes_prefetched, 0_MiB);
  write(Bits(kPage), space->near().data());
  EXPECT_EQ(copy([&](Completion done) {
              space->copies().prefetch(2_MiB, space->near().subspan(4096, kPage), std::move(done));
            }),
            nullptr);
  EXPECT_EQ(space->counters().bytes_offloaded, 2_MiB);
  EXPECT_EQ(space->counters().bytes_prefetched, 2_MiB);
  space->copies().slide(space->near().subspan(4096, kPage), space->near().data(), {});
  EXPECT_EQ(read(space->near().first(kPage)), bits);
}

}  // namespace spillway::um
