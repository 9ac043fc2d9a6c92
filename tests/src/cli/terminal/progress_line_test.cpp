#include "src/cli/terminal/progress_line.h"

#include <gtest/gtest.h>

namespace spillway::cli {
namespace {

TEST(ProgressFields, AreAsManyAsFit) {
  EXPECT_EQ(fitting({"step 1/2", "loss 3", "fast"}, 80), "step 1/2  loss 3  fast");
  EXPECT_EQ(fitting({"step 1/2", "loss 3", "fast"}, 21), "step 1/2  loss 3");  // 22 are needed
  EXPECT_EQ(fitting({"step 1/2", "loss 3", "fast"}, 4), "step 1/2");
  EXPECT_EQ(fitting({}, 4), "");
}

}  // namespace
}  // namespace spillway::cli
