// What `spillway devices` says, on any machine.

#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"

namespace spillway::test {
namespace {

using nlohmann::json;

json devices() { return json_of("devices --json -"); }

void expect_description(const json& device) {
  EXPECT_TRUE(device.at("usable"));
  EXPECT_TRUE(device.at("description").is_string());
  EXPECT_TRUE(device.at("backend").is_string());
  EXPECT_GT(device.at("available_memory_bytes"), 0);
  EXPECT_FALSE(device.at("capabilities").empty());
  for (const json& capability : device.at("capabilities")) {
    EXPECT_TRUE(capability.at("name").is_string());
    EXPECT_TRUE(capability.at("comment").is_string());
    EXPECT_TRUE(capability.at("available").is_boolean());
  }
}

TEST(DevicesJson, SaysWhatTheHostCanDo) {
  const json all = devices();
  ASSERT_GE(all.size(), 1U);
  EXPECT_EQ(all.front().at("name"), "host");
  expect_description(all.front());
}

// Whether the CUDA side was built, and whether there is a driver or a GPU: what is wrong is said.
TEST(DevicesJson, SaysWhatIsWrongWithEachDeviceThatCannotBeUsed) {
  const json all = devices();
  ASSERT_GE(all.size(), 2U);
  for (std::size_t i = 1; i < all.size(); ++i) {
    const json& gpu = all.at(i);
    EXPECT_TRUE(gpu.at("name").get<std::string>().starts_with("cuda")) << gpu;
    if (gpu.at("usable")) {
      expect_description(gpu);
    } else {
      expect_parts(gpu.at("reason").get<std::string>(), {"--device host"});
    }
  }
}

}  // namespace
}  // namespace spillway::test
