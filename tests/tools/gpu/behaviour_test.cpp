#include "tools/gpu/behaviour.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/um/cuda/recording_api.h"
#include "um/cuda/device_memory.h"

namespace spillway::gpu {
namespace {

using namespace um::literals;
using nlohmann::json;

struct Bench {
  explicit Bench(const um::CudaFacts& facts = um::RecordingApi::h200()) : api{facts} {
    static_cast<void>(api.take_log());
  }
  // What the driver was told of the slab.
  std::vector<std::string> hints() {
    std::vector<std::string> all;
    for (const std::string& line : api.take_log()) {
      if (line.starts_with("moves: ") && line.find("slab") != std::string::npos) {
        all.push_back(line.substr(7));
      }
    }
    return all;
  }

  um::RecordingApi api;
  um::DeviceMemory device{api};
  um::CudaManagedMemory managed{api, 16_GiB};
  BusyWork work{api, device, 2_MiB};
  MoveTimer timer{api, work};
};

TEST(FreeMemory, IsReadAroundEachMove) {
  Bench bench;
  const json free = measure_free_memory(bench.api, bench.managed, bench.timer, 2_MiB);
  EXPECT_EQ(bench.hints(),
            (std::vector<std::string>{"prefetch near slab 0+1", "prefetch far slab 0+1"}));
  EXPECT_FALSE(free.at("far_gives_back").get<bool>());  // this driver's free memory never changes
  EXPECT_EQ(free.at("before"), free.at("freed"));
}

TEST(Discard, IsTimedOnWhatIsFarAndWhatIsNear) {
  Bench bench;
  const json discard =
      measure_discard(bench.api, bench.managed, bench.timer, {.size = 2_MiB, .repeats = 1});
  EXPECT_EQ(bench.hints(),
            (std::vector<std::string>{"prefetch near slab 0+1", "prefetch far slab 0+1",
                                      "prefetch near slab 0+1", "prefetch far slab 0+1",
                                      "discard and prefetch near slab 0+1",
                                      "discard and prefetch near slab 0+1", "discard slab 0+1",
                                      "prefetch near slab 0+1", "prefetch far slab 0+1"}));
  EXPECT_EQ(discard.at("renew_far").at("stream_seconds").at("count"), 1);
}

TEST(Discard, SaysWhenTheDriverHasNone) {
  um::CudaFacts facts = um::RecordingApi::h200();
  facts.has_discard = false;
  Bench bench{facts};
  EXPECT_TRUE(
      measure_discard(bench.api, bench.managed, bench.timer, {.size = 2_MiB}).contains("why_not"));
  EXPECT_TRUE(bench.hints().empty());
}

TEST(Faults, ReadsWhatIsFarWithAndWithoutAPrefetch) {
  Bench bench;
  const json faults = measure_faults(bench.api, bench.managed, bench.device, bench.timer,
                                     {.size = 2_MiB, .repeats = 1});
  EXPECT_EQ(bench.hints(),
            (std::vector<std::string>{"prefetch near slab 0+1", "copy slab 0+1 to device 0",
                                      "prefetch far slab 0+1", "copy slab 0+1 to device 0",
                                      "prefetch far slab 0+1", "prefetch near slab 0+1",
                                      "copy slab 0+1 to device 0"}));
  EXPECT_TRUE(faults.contains("touch_by_processor_seconds"));
}

}  // namespace
}  // namespace spillway::gpu
