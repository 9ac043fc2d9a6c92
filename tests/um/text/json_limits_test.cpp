#include "um/text/json_limits.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::um {
namespace {

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
