#include "src/train/token_sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "tests/refusal.h"

namespace spillway {
namespace {

using Logits = std::vector<float>;

std::vector<std::int32_t> drawn(const SamplingOptions& options, const Logits& logits,
                                std::size_t count) {
  TokenSampler sampler{options};
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(sampler.draw(logits));
  return tokens;
}

// How often each token was drawn.
std::vector<double> frequencies(const SamplingOptions& options, const Logits& logits) {
  constexpr std::size_t kDraws = 20'000;
  std::vector<double> parts(logits.size());
  for (const std::int32_t token : drawn(options, logits, kDraws)) {
    parts[static_cast<std::size_t>(token)] += 1.0 / kDraws;
  }
  return parts;
}

// A frequency p of 20'000 draws is off by at most 0.0036 (one deviation): four times that.
constexpr double kOfDraws = 0.0145;

void expect_parts(const std::vector<double>& parts, const std::vector<double>& wanted) {
  ASSERT_EQ(parts.size(), wanted.size());
  for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_NEAR(parts[i], wanted[i], kOfDraws) << i;
}

TEST(TokenSampler, DrawsEachTokenAsOftenAsSoftmaxSays) {
  // exp: 1, 2, 5
  expect_parts(frequencies({}, {0.F, std::log(2.F), std::log(5.F)}), {1. / 8, 2. / 8, 5. / 8});
}

TEST(TokenSampler, DividesByTheTemperature) {
  const Logits logits{0.F, std::log(2.F), std::log(3.F)};
  expect_parts(frequencies({.temperature = 0.5}, logits), {1. / 14, 4. / 14, 9. / 14});  // squares
  expect_parts(frequencies({.temperature = 1e9}, logits), {1. / 3, 1. / 3, 1. / 3});
}

TEST(TokenSampler, DrawsAmongTheLikeliestOnly) {
  const Logits logits{std::log(2.F), 0.F, std::log(6.F), -1.F};
  expect_parts(frequencies({.top_k = 2}, logits), {2. / 8, 0, 6. / 8, 0});
  EXPECT_EQ(drawn({.top_k = 9, .seed = 3}, logits, 50), drawn({.seed = 3}, logits, 50))
      << "more than there are";
}

TEST(TokenSampler, TakesTheLikeliestAtTemperatureZero) {
  EXPECT_EQ(drawn({.temperature = 0}, {1, 3, 2}, 3), (std::vector<std::int32_t>{1, 1, 1}));
  EXPECT_EQ(drawn({.temperature = 0}, {1, 3, 3}, 1).front(), 1) << "the first of equal ones";
  EXPECT_EQ(drawn({.top_k = 1}, {1, 3, 3}, 9), std::vector<std::int32_t>(9, 1)) << "likewise";
}

TEST(TokenSampler, TakesTheLikeliestWhereTheTemperatureIsTiny) {
  EXPECT_EQ(drawn({.temperature = 1e-300}, {-7, 3, 2}, 9), std::vector<std::int32_t>(9, 1));
}

TEST(TokenSampler, DependsOnTheSeedAlone) {
  const Logits logits(50, 0.F);
  EXPECT_EQ(drawn({.seed = 7}, logits, 100), drawn({.seed = 7}, logits, 100));
  EXPECT_NE(drawn({.seed = 7}, logits, 100), drawn({.seed = 8}, logits, 100));
}

TEST(TokenSampler, TakesLogitsOfAnySize) {
  EXPECT_EQ(drawn({}, {3e38F, -3e38F}, 5), std::vector<std::int32_t>(5, 0));
  EXPECT_EQ(drawn({}, {-3e38F}, 5), std::vector<std::int32_t>(5, 0));
}

TEST(TokenSampler, RefusesWhatIsNoNumber) {
  for (const float odd :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const double temperature : {0.0, 1.0}) {
      TokenSampler sampler{{.temperature = temperature}};
      const Logits logits{1, odd};
      EXPECT_NE(test::refusal([&] { return sampler.draw(logits); }).find("not finite"),
                std::string::npos);
    }
  }
}

}  // namespace
}  // namespace spillway
