#include <gtest/gtest.h>

#include "src/cli/terminal/help.h"
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

TEST(TextTables, HaveAsManyColumnsAsFit) {
  const std::vector<TableLine> lines{{"name", "1", "22", "3"}, {"a", "b", "c", "dd"}};
  EXPECT_EQ(text_tables(lines, 15), "name  1  22   3\na     b   c  dd\n");
  EXPECT_EQ(text_tables(lines, 14), "name  1  22\na     b   c\n\nname   3\na     dd\n");
  EXPECT_EQ(text_tables(lines, 3),
            "name  1\na     b\n\nname  22\na      c\n\nname   3\na     dd\n");
  EXPECT_EQ(text_tables({{"name"}, {"a"}}, 80), "name\na\n");
}

TEST(Wrapped, BreaksLinesAtBlanksAndLeavesCommandsWhole) {
  EXPECT_EQ(wrapped("one two three\nfour", 8, 2), "one two\n  three\nfour");
  EXPECT_EQ(wrapped("one two three", 13, 0), "one two three");
  EXPECT_EQ(wrapped("a longest-word of all", 6, 0), "a\nlongest-word\nof all");
  EXPECT_EQ(wrapped("longest-word", 6, 0), "longest-word");
  EXPECT_EQ(wrapped("Example: spillway nets", 10, 0), "Example: spillway nets");
  EXPECT_EQ(wrapped("", 10, 0), "");
  EXPECT_EQ(wrapped("end\n", 10, 0), "end\n");
}

TEST(ProgressFields, AreAsManyAsFit) {
  EXPECT_EQ(fitting({"step 1/2", "loss 3", "fast"}, 80), "step 1/2  loss 3  fast");
  EXPECT_EQ(fitting({"step 1/2", "loss 3", "fast"}, 21), "step 1/2  loss 3");  // 22 are needed
  EXPECT_EQ(fitting({"step 1/2", "loss 3", "fast"}, 4), "step 1/2");
  EXPECT_EQ(fitting({}, 4), "");
}

}  // namespace
}  // namespace spillway::cli
