#include "src/ops/learning_rate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway {
namespace {

std::vector<float> first_rates(const LearningRateOptions& options, std::uint64_t count) {
  std::vector<float> rates;
  for (std::uint64_t step = 0; step < count; ++step) rates.push_back(learning_rate(options, step));
  return rates;
}

TEST(LearningRate, IsConstantUnlessAskedOtherwise) {
  EXPECT_EQ(first_rates({.rate = 0.3F}, 3), std::vector<float>(3, 0.3F));
}

// A quarter of it more each step.
TEST(LearningRate, RisesInEqualStepsWhileItWarmsUp) {
  EXPECT_EQ(first_rates({.rate = 0.5F, .warmup_steps = 4}, 6),
            (std::vector<float>{0.125F, 0.25F, 0.375F, 0.5F, 0.5F, 0.5F}));
}

TEST(LearningRate, IsMultipliedEverySoManySteps) {
  const LearningRateOptions options{
      .rate = 0.5F, .schedule = Schedule::kStep, .step_every = 3, .step_factor = 0.5F};
  EXPECT_EQ(first_rates(options, 7),
            (std::vector<float>{0.5F, 0.5F, 0.5F, 0.25F, 0.25F, 0.25F, 0.125F}));
}

TEST(LearningRate, IsMultipliedAtEachMilestone) {
  const LearningRateOptions options{
      .rate = 0.5F, .schedule = Schedule::kMultiStep, .step_factor = 0.5F, .milestones = {2, 3}};
  EXPECT_EQ(first_rates(options, 5), (std::vector<float>{0.5F, 0.5F, 0.25F, 0.125F, 0.125F}));
}

// 1/2 and 2/2 of the warm-up of 0.5, 0.5, 0.25, ...
TEST(LearningRate, CountsStepsFromTheBeginningOfTheWarmUp) {
  const LearningRateOptions options{.rate = 0.5F,
                                    .schedule = Schedule::kStep,
                                    .warmup_steps = 2,
                                    .step_every = 2,
                                    .step_factor = 0.5F};
  EXPECT_EQ(first_rates(options, 3), (std::vector<float>{0.25F, 0.5F, 0.25F}));
}

// Ten steps, two of them warm-up. Of the eight left, a quarter in: 0.2 + 0.8 (1 + cos 45 degrees) /
// 2 = 0.2 + 0.4 * 1.70710678; half in: the middle, 0.6; three quarters in: 0.2 + 0.4 * 0.29289322.
TEST(LearningRate, FallsAlongHalfACosineAfterTheWarmUpAndStaysThere) {
  const LearningRateOptions options{.rate = 1,
                                    .schedule = Schedule::kCosine,
                                    .warmup_steps = 2,
                                    .final_rate = 0.2F,
                                    .cosine_steps = 10};
  const std::vector<float> rates = first_rates(options, 12);
  EXPECT_FLOAT_EQ(rates[0], 0.5F);
  EXPECT_FLOAT_EQ(rates[1], 1.F);
  EXPECT_FLOAT_EQ(rates[2], 1.F);
  EXPECT_FLOAT_EQ(rates[4], 0.88284271F);
  EXPECT_FLOAT_EQ(rates[6], 0.6F);
  EXPECT_FLOAT_EQ(rates[8], 0.31715729F);
  EXPECT_GT(rates[9], 0.2F);
  EXPECT_EQ(rates[10], 0.2F);
  EXPECT_EQ(rates[11], 0.2F);
}

// Each schedule, with what the user is told of steps number `first` to before `last`.
TEST(LearningRate, WarnsOfStepsThatWouldTeachNothing) {
  struct Row {
    LearningRateOptions options;
    std::uint64_t first;
    std::uint64_t last;
    std::string warning;  // a part of it; empty: none
  };
  const LearningRateOptions cosine{.schedule = Schedule::kCosine, .cosine_steps = 10};
  LearningRateOptions to_a_rate = cosine;
  to_a_rate.final_rate = 1e-5F;
  // 0.01 * 0.001^14 is 1e-44, and the next one is no float above 0.
  const LearningRateOptions steps{
      .schedule = Schedule::kStep, .step_every = 2, .step_factor = 0.001F};
  const LearningRateOptions milestones{
      .schedule = Schedule::kMultiStep, .step_factor = 0, .milestones = {3, 5}};
  const std::vector<Row> rows{
      {{}, 5, 20, ""},
      {{.rate = 0}, 5, 20, ""},
      {cosine, 0, 10, ""},
      {cosine, 4, 10, ""},
      {cosine, 4, 20, "steps 11 to 20 are trained at learning rate 0; give --cosine-steps 20"},
      {cosine, 10, 11, "step 11 is trained at learning rate 0; give --cosine-steps 11, a --final"},
      {cosine, 15, 20, "steps 16 to 20 are trained at learning rate 0; give --cosine-steps 20"},
      {cosine, 0, 12, "steps 11 to 12 are trained at learning rate 0"},
      {to_a_rate, 0, 20, ""},
      {to_a_rate, 4, 20, "its final learning rate; give --cosine-steps 20 or another --schedule"},
      {steps, 0, 30, ""},
      {steps, 0, 40, "steps 31 to 40 are trained at learning rate 0; give a greater --step-every"},
      {steps, 36, 40, "steps 37 to 40 are trained at learning rate 0"},
      {milestones, 0, 3, ""},
      {milestones, 2, 9, "steps 4 to 9 are trained at learning rate 0; give fewer --milestones"}};
  for (const Row& row : rows) {
    const std::string told = schedule_warning(row.options, row.first, row.last).value_or("");
    EXPECT_EQ(told.empty(), row.warning.empty()) << told;
    EXPECT_NE(told.find(row.warning), std::string::npos) << told;
  }
}

}  // namespace
}  // namespace spillway
