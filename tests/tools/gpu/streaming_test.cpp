#include "tools/gpu/streaming.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/um/cuda/recording_api.h"
#include "um/cuda/cuda_device.h"
#include "um/error.h"

namespace spillway::gpu {
namespace {

using namespace um::literals;
using nlohmann::json;

constexpr StreamingOptions kSmall{.total = 8_MiB, .chunk = 4_MiB, .repeats = 2};

struct Opened {
  std::unique_ptr<um::CudaDevice> device;
  um::RecordingApi* api;
};

Opened open(const um::CudaOptions& options) {
  auto api = std::make_unique<um::RecordingApi>();
  um::RecordingApi* const driver = api.get();
  return {.device = std::make_unique<um::CudaDevice>(std::move(api), options), .api = driver};
}

TEST(Streaming, MeasuresEachWayAloneAndBesideTheOther) {
  const Opened opened = open({.managed_limit = 16_GiB});
  const json result = measure_streaming(*opened.device, kSmall);
  for (const char* space : {"managed", "copy"}) {
    for (const char* way : {"in", "out", "in_while_out", "out_while_in"}) {
      EXPECT_EQ(result.at(space).at(way).at("count"), 2) << space << " " << way;
      EXPECT_GT(result.at(space).at(way).at("least"), 0) << space << " " << way;
    }
  }
}

TEST(Streaming, BringsInTheHalfThatIsFar) {
  const Opened opened = open({.managed_limit = 16_GiB});
  static_cast<void>(measure_streaming(*opened.device, kSmall));
  const std::vector<std::string> log = opened.api->take_log();
  const auto noted = [&](const char* part) {
    return std::ranges::count_if(
        log, [&](const std::string& line) { return line.find(part) != std::string::npos; });
  };
  // The first half's first chunk is near at the beginning. The warm-up sends it out; then the first
  // repetition brings it in alone and sends it out again, and brings it in while the second half
  // goes out. The second repetition has that one far.
  EXPECT_EQ(noted("prefetch near slab 0+2"), 2);
  EXPECT_EQ(noted("prefetch far slab 0+2"), 3);
}

TEST(Streaming, SaysWhyASpaceCannotBeHad) {
  const Opened opened = open({.managed_limit = 2_MiB});
  const json result = measure_streaming(*opened.device, kSmall);
  EXPECT_TRUE(result.at("managed").contains("why_not"));
  EXPECT_TRUE(result.at("copy").contains("in"));
}

TEST(Streaming, NeedsUnifiedMemoryForBothHalves) { EXPECT_EQ(managed_need(kSmall), 16_MiB); }

}  // namespace
}  // namespace spillway::gpu
