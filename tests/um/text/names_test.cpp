#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <string>

#include "um/text/json_limits.h"
#include "um/text/wording.h"

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

// Each of the kMany taken names is skipped once. Afterwards each call looks up its own name and the
// next number. A search from the first number each time would need kMany^2 / 2 more look-ups.
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

TEST(ShortestDecimal, IsWhatPeopleWrite) {
  EXPECT_EQ(shortest_decimal(0.01F), 0.01);
  EXPECT_EQ(shortest_decimal(0.1F), 0.1);
  EXPECT_EQ(shortest_decimal(5e-4F), 5e-4);
  EXPECT_EQ(shortest_decimal(0), 0);
  EXPECT_NE(shortest_decimal(0.01F), static_cast<double>(0.01F));
}

TEST(ShortestDecimal, IsTheSameFloat) {
  for (const float value : {0.01F, 1.0F / 3, 16777217.0F, 1e-45F, -2.5e-7F,
                            std::numeric_limits<float>::max(), std::numeric_limits<float>::min()}) {
    EXPECT_EQ(static_cast<float>(shortest_decimal(value)), value);
  }
}

TEST(JsonLimits, AllowSoManyLevels) {
  EXPECT_EQ(beyond_json_limits("[{\"a\":[1]},[2]]", {.depth = 3}), std::nullopt);
  EXPECT_EQ(beyond_json_limits("[{\"a\":[[1]]},[2]]", {.depth = 3}),
            "nests more than 3 levels deep, at byte 8");
  EXPECT_EQ(beyond_json_limits("[[]],[[]],[[]]", {.depth = 2}), std::nullopt);
}

TEST(JsonLimits, AllowSoManyValues) {
  EXPECT_EQ(beyond_json_limits("[1,2,3]", {.values = 4}), std::nullopt);
  EXPECT_EQ(beyond_json_limits("[1,2,3,4]", {.values = 4}), "holds more than 4 values");
}

TEST(JsonLimits, DoNotLookIntoStrings) {
  EXPECT_EQ(beyond_json_limits(R"(["[[[[,,,,", "\"[[[["])", {.depth = 1, .values = 3}),
            std::nullopt);
}

TEST(JsonLimits, AreAboutAnyText) {
  for (const char* const text : {"", "]]]]", "\"", "\"\\", "\"\\\"", "}{", "[\""}) {
    EXPECT_EQ(beyond_json_limits(text), std::nullopt) << text;
  }
}

TEST(JsonLimits, SeeAtOnceThatATextIsAllBrackets) {
  EXPECT_EQ(beyond_json_limits(std::string(50'000'000, '[')),
            "nests more than 64 levels deep, at byte 65");
}

}  // namespace
}  // namespace spillway::um
