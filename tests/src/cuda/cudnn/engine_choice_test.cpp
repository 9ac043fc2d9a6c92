#include "src/cuda/cudnn/engine_choice.h"

#include <gtest/gtest.h>

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

TEST(ChooseEngines, PutsTheLeastWorkspaceFirst) {
  const std::vector<um::Bytes> workspaces{50_MiB, 10_MiB, 1_MiB};
  EXPECT_EQ(choose_engines(workspaces, 1_GiB), (Choice{2, 1, 0}));
}

TEST(ChooseEngines, OfEqualWorkspacesPutsTheFasterFirst) {
  const std::vector<um::Bytes> workspaces{2_MiB, 1_MiB, 1_MiB};
  EXPECT_EQ(choose_engines(workspaces, 1_GiB), (Choice{1, 2, 0}));
}

TEST(ChooseEngines, KeepsTheFourFastestAndThoseThanWhichNoFasterOneTakesLess) {
  // 0 to 3 are the four fastest. Of the others 5 and 7 take less than all before them.
  const std::vector<um::Bytes> workspaces{9_MiB, 9_MiB, 9_MiB, 9_MiB, 9_MiB, 5_MiB, 6_MiB, 2_MiB};
  EXPECT_EQ(choose_engines(workspaces, 1_GiB), (Choice{7, 5, 0, 1, 2, 3}));
}

TEST(ChooseEngines, LeavesOutWhatTakesTooMuch) {
  const std::vector<um::Bytes> workspaces{50_MiB, 10_MiB, 1_MiB};
  EXPECT_EQ(choose_engines(workspaces, 10_MiB), (Choice{2, 1}));
  EXPECT_EQ(choose_engines(workspaces, 1_KiB), Choice{});
}

TEST(ChooseEngines, KeepsEightAtMostAmongThemTheLeastAndTheFastest) {
  std::vector<um::Bytes> workspaces;
  for (std::uint64_t i = 0; i < 20; ++i) workspaces.push_back((20 - i) * 1_MiB);
  EXPECT_EQ(choose_engines(workspaces, 1_GiB), (Choice{19, 18, 17, 16, 3, 2, 1, 0}));
}

}  // namespace
}  // namespace spillway::cuda
