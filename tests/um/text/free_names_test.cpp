#include "um/text/free_names.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::um {
namespace {

TEST(FreeNames, NumbersWhatIsTaken) {
  FreeNames names{{"labels"}};
  EXPECT_EQ(names.take("a"), "a");
  EXPECT_EQ(names.take("a"), "a_2");
  EXPECT_TRUE(names.insert("a_3"));
  EXPECT_EQ(names.take("a_4"), "a_4");
  EXPECT_EQ(names.take("a"), "a_5");
  EXPECT_EQ(names.take("a_2"), "a_2_2");
  EXPECT_EQ(names.take("labels"), "labels_2");
  EXPECT_FALSE(names.insert("labels"));
}

// Looked up from the first number on each time, these would be 2 * 10^11 names.
TEST(FreeNames, GoesOnWhereItHasCome) {
  constexpr int kMany = 300000;
  FreeNames names;
  for (int i = 2; i <= kMany; ++i) names.insert("a_" + std::to_string(i));
  EXPECT_EQ(names.take("a"), "a");
  for (int i = 1; i <= kMany; ++i) {
    ASSERT_EQ(names.take("a"), "a_" + std::to_string(kMany + i));
  }
}

}  // namespace
}  // namespace spillway::um
