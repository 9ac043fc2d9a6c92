#include <gtest/gtest.h>

#include "src/cli/terminal/terminal.h"

namespace spillway::cli {
namespace {

TEST(TextTable, AlignsNamesToTheLeftAndNumbersToTheRight) {
  EXPECT_EQ(text_table({{"way", "time"}, {"fault", "1"}, {"copy", "100"}}),
            "way    time\n"
            "fault     1\n"
            "copy    100\n");
}

TEST(TextTable, HasAsManyNamesAsItIsTold) {
  EXPECT_EQ(text_table({{"a", "bbb", "c"}, {"aa", "b", "cc"}}, 2),
            "a   bbb   c\n"
            "aa  b    cc\n");
}

TEST(TextTable, MayHaveShortLinesAndNone) {
  EXPECT_EQ(text_table({{"a", "b"}, {"long"}}), "a     b\nlong\n");
  EXPECT_EQ(text_table({}), "");
}

TEST(ProgressFields, AreAsManyAsFit) {
  EXPECT_EQ(fitting({"step 1/2", "loss 3", "fast"}, 80), "step 1/2  loss 3  fast");
  EXPECT_EQ(fitting({"step 1/2", "loss 3", "fast"}, 21), "step 1/2  loss 3");  // 22 are needed
  EXPECT_EQ(fitting({"step 1/2", "loss 3", "fast"}, 4), "step 1/2");
  EXPECT_EQ(fitting({}, 4), "");
}

}  // namespace
}  // namespace spillway::cli
