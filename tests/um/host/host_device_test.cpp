#include "um/host/host_device.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/um/device_contract.h"
#include "um/error.h"

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

}  // namespace
}  // namespace spillway::um
