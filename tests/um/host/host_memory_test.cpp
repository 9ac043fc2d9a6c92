#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "um/error.h"
#include "um/host/copy_space.h"

namespace spillway::um {
namespace {

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
