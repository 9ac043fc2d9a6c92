#include "um/error.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <string>

#include "um/bytes.h"
#include "um/text/json_limits.h"
#include "um/text/wording.h"

namespace spillway::um {
namespace {

TEST(Error, KeepsASentence) {
  EXPECT_STREQ(Error{"cannot open /a/b: 'x  y'"}.what(), "cannot open /a/b: 'x  y'");
  EXPECT_EQ(shortened(" a  b "), " a  b ");
  EXPECT_EQ(shortened(""), "");
}

TEST(Error, ShortensALongNameInTheMiddle) {
  const std::string name = std::string(100'000, 'a') + "/end";
  EXPECT_EQ(shortened("there is no " + name + " here"), "there is no " + std::string(80, 'a') +
                                                            "[...99864 bytes...]" +
                                                            std::string(56, 'a') + "/end here");
  EXPECT_STREQ(OutOfMemory{name}.what(), shortened(name).c_str());
  EXPECT_EQ(shortened(std::string(1000, 'a')), std::string(1000, 'a'));  // a path to copy
  EXPECT_NE(shortened(std::string(1001, 'a')), std::string(1001, 'a'));
}

TEST(Error, ShortensManyWords) {
  std::string words;
  for (int i = 0; i < 50'000; ++i) words += "a ";
  EXPECT_LT(shortened(words).size(), 4000U);
}

TEST(Error, ShowsNoControlCharacters) {
  EXPECT_STREQ(Error{"tensor 'a\x1b[31m\nb\x7f' is"}.what(), "tensor 'a?[31m?b?' is");
}

TEST(Error, DoesNotCutThroughACharacter) {
  std::string name = "a";
  for (int i = 0; i < 1000; ++i) name += "\xc3\xa4";  // 79 bytes hold 39 and a half of them
  const std::string cut = shortened(name);
  EXPECT_EQ(cut.find("[..."), 1U + 2 * 39);
  EXPECT_EQ(cut.substr(cut.size() - 60).front(), '\xc3');
}

static_assert(2_MiB == 2 * 1_MiB);
static_assert(round_up(3_B, 2_B) == 4_B);
static_assert(round_down(3_B, 2_B) == 2_B);
static_assert(saturating_difference(1_B, 2_B) == 0_B);

TEST(Bandwidth, RoundsTransferTimeUp) { EXPECT_EQ(1_B / Bandwidth{3e9}, Nanoseconds{1}); }

TEST(Bandwidth, TakesNoLongerThanCanBeAddedUp) {
  const Nanoseconds longest = Bytes{1ULL << 63U} / Bandwidth{1e3};
  EXPECT_EQ(longest, Nanoseconds{std::int64_t{1} << 53U});
  EXPECT_GT(1000 * longest, longest);
  EXPECT_EQ(Bytes{1ULL << 40U} / Bandwidth{1e9}, Nanoseconds{1'099'511'627'776});
}

TEST(ParseBytes, ReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("4096"), 4096_B);
  EXPECT_EQ(parse_bytes("512MiB"), 512_MiB);
  EXPECT_EQ(parse_bytes("1.5 GiB"), 1536_MiB);
  EXPECT_EQ(parse_bytes("40GB"), Bytes{40'000'000'000});
  EXPECT_EQ(parse_bytes("2G"), 2_GiB);
  EXPECT_EQ(parse_bytes("2g"), 2_GiB);
  EXPECT_EQ(parse_bytes("64k"), 64_KiB);
  EXPECT_EQ(parse_bytes("0.5M"), 512_KiB);
}

TEST(ParseBytes, RefusesWhatIsNoAmount) {
  for (const char* text : {"", "GiB", "12Gib", "0.6", "1.5B", "-1", "1e9", "nan", "inf", "1 2",
                           "1MiBx", "99999999999TiB"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(ParseBandwidth, WantsARatePerSecond) {
  EXPECT_EQ(parse_bandwidth("2GB/s"), Bandwidth{2e9});
  EXPECT_GT(8192_GiB / parse_bandwidth("1kB/s").value(), Nanoseconds{0});  // representable
  for (const char* text : {"", "2GB", "0GB/s", "-1GB/s", "GB/s", "2Gb/s", "0.00001B/s"}) {
    EXPECT_EQ(parse_bandwidth(text), std::nullopt) << text;
  }
}

TEST(BytesText, KeepsThreeFigures) {
  EXPECT_EQ(to_string(Bytes{512}), "512 B");
  EXPECT_EQ(to_string(1536_KiB), "1.50 MiB");
  EXPECT_EQ(to_string(24_GiB), "24.0 GiB");
}

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
