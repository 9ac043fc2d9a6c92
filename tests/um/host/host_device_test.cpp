#include "um/host/host_device.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/um/device_contract.h"
#include "um/error.h"
#include "um/host/copy_space.h"

namespace spillway::um {
namespace {

const DeviceMaker kHostMaker{.kind = "Host",
                             .open = [] { return std::make_unique<HostDevice>(); },
                             .write = [](std::span<const std::byte> bytes,
                                         std::byte* near) { std::ranges::copy(bytes, near); }};

INSTANTIATE_TEST_SUITE_P(Host, DeviceContract, testing::Values(kHostMaker), device_kind);

TEST(HostDevice, NamesItsProcessor) {
  const std::string name = HostDevice{}.name();
  EXPECT_TRUE(name.starts_with("host (")) << name;
  EXPECT_TRUE(name.ends_with(" CPUs)") || name.ends_with(", 1 CPU)")) << name;
}

TEST(HostDevice, SaysWhatEachCapabilityGivesOrWhyItIsMissing) {
  const std::vector<Capability> capabilities = HostDevice{}.capabilities();
  for (const char* name : {"uffd_move", "memfd_segv", "huge_pages"}) {
    const auto found = std::find_if(capabilities.begin(), capabilities.end(),
                                    [&](const Capability& each) { return each.name == name; });
    ASSERT_NE(found, capabilities.end()) << name;
    EXPECT_FALSE(found->comment.empty()) << name;
  }
}

TEST(HostDevice, MakesAManagedSpace) {
  HostDevice device;
  EXPECT_GT(device.available_memory(), 1_MiB);
  Ledger ledger{4_MiB};
  const auto space =
      device.make_managed_space({.size = 8_MiB, .near = 4_MiB, .page = 2_MiB}, ledger);
  ASSERT_EQ(space->slab().size(), (8_MiB).count());
  for (std::size_t at = 0; at < space->slab().size(); at += 4096) {
    space->slab()[at] = static_cast<std::byte>(at >> 12U);
  }
  for (std::size_t at = 0; at < space->slab().size(); at += 4096) {
    ASSERT_EQ(space->slab()[at], static_cast<std::byte>(at >> 12U));
  }
}

/// A completion that can be waited for.
class Done {
 public:
  [[nodiscard]] Completion completion() {
    return [promise = promise_](const std::exception_ptr& failure) {
      if (failure) {
        promise->set_exception(failure);
      } else {
        promise->set_value();
      }
    };
  }
  /// Throws: the failure of the copy.
  void wait() { promise_->get_future().get(); }

 private:
  // Shared with the completion, which must be copyable.
  std::shared_ptr<std::promise<void>> promise_ = std::make_shared<std::promise<void>>();
};

void fill(Range range, int value) {
  std::fill(range.begin(), range.end(), static_cast<std::byte>(value));
}

bool is_all(Range range, int value) {
  return std::all_of(range.begin(), range.end(),
                     [&](std::byte b) { return b == static_cast<std::byte>(value); });
}

CopyOptions small_space() { return {.size = 16_MiB, .near = 8_MiB}; }

void offload(CopySpace& space, Range near, Bytes far_offset) {
  Done done;
  space.copies().offload(near, far_offset, done.completion());
  done.wait();
}

void prefetch(CopySpace& space, Bytes far_offset, Range near) {
  Done done;
  space.copies().prefetch(far_offset, near, done.completion());
  done.wait();
}

void expect_round_trip(const CopyOptions& options) {
  HostCopySpace space{options};
  ASSERT_EQ(space.near().size(), (8_MiB).count());
  const Range large = space.near().first(5 << 20);  // 3 pieces, the last one partial
  const Range small = space.near().subspan(6 << 20, 4096);
  fill(large, 1);
  fill(small, 2);
  offload(space, large, 4_KiB);
  offload(space, small, 12_MiB);
  fill(space.near(), 0);
  prefetch(space, 4_KiB, large);
  prefetch(space, 12_MiB, small);
  EXPECT_TRUE(is_all(large, 1));
  EXPECT_TRUE(is_all(small, 2));
  EXPECT_TRUE(is_all(space.near().subspan(5 << 20, 1 << 20), 0));
}

TEST(CopySpace, BringsBackWhatWasOffloadedToRam) { expect_round_trip(small_space()); }

TEST(CopySpace, BringsBackWhatWasOffloadedToAFile) {
  const test::TemporaryFolder folder;
  CopyOptions options = small_space();
  options.far.file = folder.path();
  expect_round_trip(options);
}

TEST(CopySpace, SaysWhereItsFarMemoryIs) {
  EXPECT_EQ(HostCopySpace{small_space()}.description(), "far RAM");
  const test::TemporaryFolder folder;
  CopyOptions options = small_space();
  options.far.file = folder.path();
  const std::string description = HostCopySpace{options}.description();
  EXPECT_EQ(description.find("far file in " + folder.path().string() + ", "), 0U) << description;
}

// 4 MiB at 100 MiB/s and 10 ms latency, twice in one direction, take at least 2 * (40 + 10) ms,
// even if issued together. The other direction runs concurrently.
TEST(CopySpace, KeepsToTheTimesOfItsLinkInEachDirection) {
  CopyOptions options = small_space();
  options.link = {.bandwidth = Bandwidth{100 * 1048576.0},
                  .latency = std::chrono::milliseconds{10}};
  HostCopySpace space{options};
  Done first;
  Done second;
  Done other;
  const auto start = Link::Clock::now();
  space.copies().offload(space.near().first(4 << 20), 0_B, first.completion());
  space.copies().offload(space.near().first(4 << 20), 4_MiB, second.completion());
  space.copies().prefetch(8_MiB, space.near().subspan(4 << 20), other.completion());
  first.wait();
  EXPECT_GE(Link::Clock::now() - start, std::chrono::milliseconds{50});
  second.wait();
  EXPECT_GE(Link::Clock::now() - start, std::chrono::milliseconds{100});
  other.wait();
}

TEST(CopySpace, TellsTheCompletionWhenACopyFailsAndCountsNothing) {
  const test::TemporaryFolder folder;
  CopyOptions options = small_space();
  options.far.file = folder.path();
  HostCopySpace space{options};
  ASSERT_EQ(mprotect(space.near().data(), 4096, PROT_NONE),
            0);  // the system refuses to read into it
  EXPECT_THROW(prefetch(space, 0_B, space.near().first(4096)), Error);
  EXPECT_THROW(offload(space, space.near().first(4096), 0_B), Error);
  EXPECT_EQ(space.counters().bytes_prefetched, 0_B);
  EXPECT_EQ(space.counters().bytes_offloaded, 0_B);
  prefetch(space, 0_B, space.near().subspan(4096, 4096));  // later copies succeed
}

TEST(HostMemory, AlignsToPagesAndLargeBlocksToHugePages) {
  HostMemory memory;
  for (const auto& [size, alignment] : {std::pair{1_B, 4_KiB},
                                        {5_KiB, 4_KiB},
                                        {2_MiB, 2_MiB},
                                        {2_MiB + 1_B, 2_MiB},
                                        {6_MiB, 2_MiB}}) {
    const Block block{memory, size};
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % alignment.count(), 0U);
    std::fill(block.bytes().begin(), block.bytes().end(), std::byte{1});
  }
}

TEST(HostMemory, HasAllItsPagesFromTheStart) {
  HostMemory memory;
  const Block block{memory, 4_MiB};
  std::vector<unsigned char> is_resident(1024);  // 4 MiB / 4 KiB
  ASSERT_EQ(mincore(block.data(), block.size().count(), is_resident.data()), 0);
  EXPECT_TRUE(
      std::all_of(is_resident.begin(), is_resident.end(), [](unsigned c) { return c & 1; }));
}

TEST(HostMemory, RefusesMoreThanTheMachineHas) {
  HostMemory memory;
  try {
    (void)memory.allocate(1024 * 1024_GiB);
    FAIL() << "1 PiB fits";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(std::string{error.what()}.find("cannot take 1024 TiB of near memory: "), 0U)
        << error.what();
  }
}

TEST(HostMemory, WantsASize) {
  HostMemory memory;
  EXPECT_THROW((void)memory.allocate(0_B), ContractError);
}

}  // namespace
}  // namespace spillway::um
