#include "um/text/free_names.h"

#include <gtest/gtest.h>

#include <cstddef>
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

// Each of the kMany names that are taken is passed over once, then each call looks up its own name
// and the next number: from the first number on each time, there would be kMany^2 / 2 look-ups
// more.
TEST(FreeNames, GoesOnWhereItHasCome) {
  constexpr std::size_t kMany = 1000;
  FreeNames names;
  for (std::size_t i = 2; i <= kMany; ++i) names.insert("a_" + std::to_string(i));
  EXPECT_EQ(names.take("a"), "a");
  EXPECT_EQ(names.lookups(), kMany);
  for (std::size_t i = 1; i <= kMany; ++i) {
    ASSERT_EQ(names.take("a"), "a_" + std::to_string(kMany + i));
  }
  EXPECT_EQ(names.lookups(), kMany + (kMany - 1) + 2 * kMany);
}

}  // namespace
}  // namespace spillway::um
