#include <gtest/gtest.h>

#include <numeric>

#include "src/cuda/cudnn/convolution_engines.h"

namespace spillway::cuda {
namespace {

using namespace um::literals;
using Choice = std::vector<std::size_t>;

TEST(CountedWorkspace, IsInWholeMebibytesAndAtLeastOne) {
  EXPECT_EQ(counted_workspace(0_B), 1_MiB);
  EXPECT_EQ(counted_workspace(131_B), 1_MiB);
  EXPECT_EQ(counted_workspace(1_MiB), 1_MiB);
  EXPECT_EQ(counted_workspace(1_MiB + 1_B), 2_MiB);
}

// Returns candidates of engine 0, unless `engines` differs.
std::vector<EngineCandidate> candidates(const std::vector<um::Bytes>& workspaces,
                                        const std::vector<std::int64_t>& engines = {}) {
  std::vector<EngineCandidate> all;
  for (std::size_t i = 0; i < workspaces.size(); ++i) {
    all.push_back({.workspace = workspaces[i], .engine = engines.empty() ? 0 : engines[i]});
  }
  return all;
}

TEST(ChooseEngines, PutsTheLeastWorkspaceFirst) {
  EXPECT_EQ(choose_engines(candidates({50_MiB, 10_MiB, 1_MiB}), 1_GiB), (Choice{2, 1, 0}));
}

TEST(ChooseEngines, OfEqualWorkspacesPutsTheFasterFirst) {
  EXPECT_EQ(choose_engines(candidates({2_MiB, 1_MiB, 1_MiB}), 1_GiB), (Choice{1, 2, 0}));
}

TEST(ChooseEngines, LeavesOutWhatTakesTooMuch) {
  const auto three = candidates({50_MiB, 10_MiB, 1_MiB}, {0, 1, 2});
  EXPECT_EQ(choose_engines(three, 10_MiB), (Choice{2, 1}));
  EXPECT_EQ(choose_engines(three, 1_KiB), Choice{});
}

TEST(ChooseEngines, KeepsTheFrontAndTheFourFastestAndThenTenOfOneEngine) {
  // 0 to 3 are the four fastest. Among the others, 9, 11 and 13 need less than all before them. 4
  // to 7 fill up to ten.
  std::vector<um::Bytes> workspaces(16, 9_MiB);
  workspaces[9] = 5_MiB;
  workspaces[10] = 6_MiB;
  workspaces[11] = 4_MiB;
  workspaces[13] = 2_MiB;
  EXPECT_EQ(choose_engines(candidates(workspaces), 1_GiB),
            (Choice{13, 11, 9, 0, 1, 2, 3, 4, 5, 6}));
}

TEST(ChooseEngines, PutsOtherEnginesBeforeFurtherSettings) {
  // Chooses the four fastest of engine 7, the faster one of 8 and of 9, then 7's fifth and so on.
  const std::vector<um::Bytes> workspaces(14, 1_MiB);
  EXPECT_EQ(
      choose_engines(candidates(workspaces, {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 8, 9, 9}), 1_GiB),
      (Choice{0, 1, 2, 3, 4, 5, 6, 7, 10, 12}));
}

TEST(ChooseEngines, KeepsTwelveEnginesAtMost) {
  const std::vector<um::Bytes> workspaces(20, 1_MiB);
  std::vector<std::int64_t> engines(20);
  std::iota(engines.begin(), engines.end(), 0);
  EXPECT_EQ(choose_engines(candidates(workspaces, engines), 1_GiB),
            (Choice{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST(ChooseEngines, TakesSlowOnesForWantOfOthersOnly) {
  auto listed = candidates(std::vector<um::Bytes>(12, 1_MiB), {7, 7, 7, 7, 7, 7, 7, 8, 1, 1, 2, 2});
  for (std::size_t i = 8; i < listed.size(); ++i) listed[i].is_slow = true;
  EXPECT_EQ(choose_engines(listed, 1_GiB), (Choice{0, 1, 2, 3, 4, 5, 6, 7, 8, 10}));
}

TEST(ChooseEngines, OfALongFrontKeepsTheLeastAndTheFastest) {
  std::vector<um::Bytes> workspaces;
  for (std::uint64_t i = 0; i < 20; ++i) workspaces.push_back((20 - i) * 1_MiB);
  EXPECT_EQ(choose_engines(candidates(workspaces), 1_GiB),
            (Choice{19, 18, 17, 16, 5, 4, 3, 2, 1, 0}));
}

}  // namespace
}  // namespace spillway::cuda
