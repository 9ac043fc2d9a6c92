// With far memory in a file, the process's resident set grows with the budget, not the network.

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/src/data/temporary_folder.h"

namespace spillway {
namespace {

using nlohmann::json;
using test::joined;
using test::run_spillway;
using test::TemporaryFolder;

constexpr std::int64_t kMiB = 1 << 20;

class ResidentSet : public testing::Test {
 protected:
  void SetUp() override {
    if (SPILLWAY_SLOW_BUILD != 0)
      GTEST_SKIP() << "a slow build: sanitizers take memory of their own";
  }

  // ResNet-18 at 112x112: 98 MiB of weights, gradients and momentum, and about 10 MiB of
  // activations an image.
  [[nodiscard]] json train(int batch, std::int64_t budget, const std::string& memory) const {
    const json summary = summary_of(run_spillway(
        {"train", "--net", "resnet18", "--batch", std::to_string(batch), "--image-size", "112",
         "--steps", "2", "--conv-algorithm", "direct", "--budget", std::to_string(budget),
         "--memory", memory, "--far", "file:" + folder_.path().string(), "--json", "-"}));
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

// Placeholder of the bounds is filled in from the measurement.
TEST_F(ResidentSet, GrowsWithTheBudgetAndNotWithTheNetwork) {
  for (const char* memory : {"managed", "copy"}) {
    SCOPED_TRACE(memory);
    const json small = train(12, 200 * kMiB, memory);
    const json large = train(32, 200 * kMiB, memory);
    const json roomy = train(32, 350 * kMiB, memory);

    std::printf("%s %ld %ld | %ld %ld | %ld %ld\n", memory, need(small) / kMiB,
                resident_set(small) / kMiB, need(large) / kMiB, resident_set(large) / kMiB,
                need(roomy) / kMiB, resident_set(roomy) / kMiB);
  }
}

}  // namespace
}  // namespace spillway
