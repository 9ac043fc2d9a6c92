// With far memory in a file, the process's resident set grows with the budget, not the network.

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

constexpr std::int64_t kMiB = 1 << 20;

class ResidentSet : public testing::Test {
 protected:
  void SetUp() override {
    if (SPILLWAY_SLOW_BUILD != 0)
      GTEST_SKIP() << "a slow build: sanitizers take memory of their own";
  }

  // SqueezeNet at 112x112: about 4 MiB of activations an image, and few operations on each byte.
  [[nodiscard]] json train(int batch, std::int64_t budget, const std::string& memory) const {
    const json summary =
        summary_of({"train --net squeezenet --batch", std::to_string(batch),
                    "--image-size 112 --steps 2 --conv-algorithm direct",
                    "--sub-batch off --budget", std::to_string(budget), "--memory", memory, "--far",
                    "file:" + folder_.path().string(), "--json -"});
    EXPECT_LE(summary.value("near_peak_bytes", budget + 1), budget);
    return summary;
  }
  static std::int64_t resident_set(const json& summary) {
    return summary.value("peak_resident_set_bytes", std::int64_t{0});
  }
  static std::int64_t need(const json& summary) {
    return summary.value("resident_bytes", std::int64_t{0});
  }

  TemporaryFolder folder_;
};

// Batch 32 needs about 125 MiB and batch 64 about 275: more than the 115 that both may use, and
// than what `roomy` may. Beside the budget a process holds its code, data set and batches, which
// grow by 5 MiB from 32 to 64 images, some times over: the loader's, ours, a copy on its way.
TEST_F(ResidentSet, GrowsWithTheBudgetAndNotWithTheNetwork) {
  constexpr std::int64_t kTight = 115 * kMiB;
  constexpr std::int64_t kRoomy = 235 * kMiB;
  for (const char* memory : {"managed", "copy"}) {
    SCOPED_TRACE(memory);
    const json small = train(32, kTight, memory);
    const json large = train(64, kTight, memory);
    const json roomy = train(64, kRoomy, memory);

    ASSERT_GT(need(small), kTight);
    ASSERT_GT(need(large), kRoomy);
    EXPECT_LT(resident_set(large) - resident_set(small), (need(large) - need(small)) / 3);
    EXPECT_GT(resident_set(roomy) - resident_set(large), (kRoomy - kTight) * 3 / 4);
    EXPECT_LT(resident_set(roomy) - resident_set(large), (kRoomy - kTight) * 5 / 4);
  }
}

}  // namespace
}  // namespace spillway::test
