#include "src/plan/budget.h"

#include <gtest/gtest.h>

#include "tests/refusal.h"

namespace spillway {
namespace {

using namespace um::literals;
using test::refusal;

// Smallest 100, resident 300, with any algorithms 350 bytes.
const prefetch::NearNeed kNeed{.resident = 300_B, .peak_with_workspace = 350_B, .smallest = 100_B};

um::Bytes resolve(const char* text, um::Bytes available = 1000_B) {
  return Budget::parse(text).resolve(kNeed, available);
}

TEST(Budget, InBytesIsTakenAsItIs) {
  EXPECT_EQ(resolve("512MiB"), 512_MiB);
  EXPECT_EQ(resolve("2GB"), 2'000'000'000_B);
  EXPECT_TRUE(Budget::parse("64").is_absolute());
  EXPECT_FALSE(Budget::parse("40%").is_absolute());
}

TEST(Budget, InPercentIsOfTheResidentNeed) {
  EXPECT_EQ(resolve("40%"), 120_B);
  EXPECT_EQ(resolve("100%"), 300_B);
  EXPECT_EQ(resolve("101%"), 303_B);  // more than needed does no harm
  EXPECT_EQ(resolve("0.5%"), 2_B);    // 1.5, rounded up
}

TEST(Budget, MinGoesFromTheSmallestToTheResidentNeed) {
  EXPECT_EQ(resolve("min"), 100_B);
  EXPECT_EQ(resolve("min+0%"), 100_B);
  EXPECT_EQ(resolve("min+20%"), 140_B);  // 100 + 0.2 * (300 - 100)
  EXPECT_EQ(resolve("min+100%"), 300_B);
}

// Of 2^56 bytes, ten thousand times as much is more than 64 bits hold.
TEST(Budget, OfHugeNeedsEndsAtWhatNoMemoryHas) {
  const prefetch::NearNeed huge{.resident = um::Bytes{1ULL << 56U},
                                .peak_with_workspace = um::Bytes{1ULL << 56U},
                                .smallest = 100_B};
  EXPECT_EQ(Budget::parse("1000000%").resolve(huge, 1000_B), um::Bytes{1ULL << 62U});
  EXPECT_EQ(Budget::parse("min+1000000%").resolve(huge, 1000_B), um::Bytes{(1ULL << 62U) + 100});
}

TEST(Budget, AutoIsWhatARunWithoutMovesNeedsOrNineTenthsOfWhatIsThere) {
  EXPECT_EQ(resolve("auto", 1000_B), 350_B);
  EXPECT_EQ(resolve("auto", 200_B), 180_B);
}

TEST(Budget, RefusesEverythingElseAndSaysWhatIsAllowed) {
  for (const char* text :
       {"", "0", "0%", "-5", "-5%", "12Gib", "40 %", "min+", "min+20", "min-20%", "min+-20%", "%",
        "nan%", "inf%", "1e9%", "lots", "Auto", "99999999TiB"}) {
    EXPECT_EQ(refusal([&] {
                return Budget::parse(text);
              }).find("'" + std::string{text} + "' is no budget: give bytes"),
              0U)
        << text;
  }
}

}  // namespace
}  // namespace spillway
