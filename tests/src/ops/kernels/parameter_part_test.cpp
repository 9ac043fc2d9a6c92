#include <array>
#include <vector>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

// On every backend, more than one part holds weights, and inputs and outputs have padding.
class PartsOfParameters : public KernelRunner, public ::testing::WithParamInterface<ParameterSpec> {
 protected:
  static constexpr std::size_t kParts = 3;

  // Optimizer state or a gradient, whole and in parts.
  struct Numbers {
    Block whole;
    std::vector<Block> parts;
  };
  [[nodiscard]] Numbers numbers_of(unsigned seed) {
    Values values = host::random_values(element_count(spec_), seed);
    for (double& value : values) value = static_cast<double>(static_cast<float>(value * value));
    return {parameters(spec_, values), parts(spec_, kParts, values)};
  }
  [[nodiscard]] Block weights() {
    return parameters(spec_, host::random_values(element_count(spec_), 1));
  }
  void expect_same(Numbers& numbers) {
    EXPECT_EQ(values(spec_, numbers.parts), values(spec_, numbers.whole));
  }

  const ParameterSpec spec_ = GetParam();
  const StepContext context_{.step = 3, .learning_rate = 0.25F};
};

TEST_P(PartsOfParameters, HoldTheNumbersOfTheWhole) {
  const Values values_of_whole = host::random_values(element_count(spec_), 1);
  std::vector<Block> blocks = parts(spec_, kParts, values_of_whole);
  EXPECT_EQ(values(spec_, blocks), values_of_whole);
}

TEST_P(PartsOfParameters, AreUpdatedBySgdWithTheBitsOfTheWhole) {
  Block whole = weights();
  Block in_parts = weights();
  Numbers v = numbers_of(2);
  Numbers dw = numbers_of(3);
  SgdUpdate update{.parameters = spec_,
                   .options = {.momentum = 0.5F, .weight_decay = 0.1F, .nesterov = true}};
  run(update, {&whole, &v.whole, &dw.whole, &whole, &v.whole}, context_);
  for (std::size_t i = 0; i < kParts; ++i) {
    update.part = {.index = i, .count = kParts};
    run(update, {&in_parts, &v.parts[i], &dw.parts[i], &in_parts, &v.parts[i]}, context_);
  }
  EXPECT_EQ(in_parts.bytes(), whole.bytes());
  EXPECT_NE(in_parts.bytes(), weights().bytes());
  expect_same(v);
}

TEST_P(PartsOfParameters, AreUpdatedByAdamWithTheBitsOfTheWhole) {
  for (const bool decoupled : {false, true}) {
    Block whole = weights();
    Block in_parts = weights();
    Numbers m = numbers_of(2);
    Numbers v = numbers_of(3);
    Numbers dw = numbers_of(4);
    AdamUpdate update{.parameters = spec_,
                      .options = {.weight_decay = 0.1F, .decoupled = decoupled}};
    run(update, {&whole, &m.whole, &v.whole, &dw.whole, &whole, &m.whole, &v.whole}, context_);
    for (std::size_t i = 0; i < kParts; ++i) {
      update.part = {.index = i, .count = kParts};
      run(update,
          {&in_parts, &m.parts[i], &v.parts[i], &dw.parts[i], &in_parts, &m.parts[i], &v.parts[i]},
          context_);
    }
    EXPECT_EQ(in_parts.bytes(), whole.bytes());
    EXPECT_NE(in_parts.bytes(), weights().bytes());
    expect_same(m);
    expect_same(v);
  }
}

TEST_P(PartsOfParameters, AccumulateGradientsWithTheBitsOfTheWhole) {
  Numbers sum = numbers_of(2);
  Numbers dw = numbers_of(3);
  run(AccumulateGradients{.parameters = spec_}, {&sum.whole, &dw.whole, &sum.whole});
  for (std::size_t i = 0; i < kParts; ++i) {
    run(AccumulateGradients{.parameters = spec_, .part = {.index = i, .count = kParts}},
        {&sum.parts[i], &dw.parts[i], &sum.parts[i]});
  }
  expect_same(sum);
}

// Updates as ranks do it: each rank updates its slice in the gradient's memory, then all slices are
// gathered. The second step uses the moments that slices have kept.
TEST_P(PartsOfParameters, AreUpdatedInSlicesWithTheBitsOfTheWhole) {
  constexpr std::size_t kSlices = 8;
  // The slices together exceed the block with any backend's padding. A multiple of 16.
  const std::size_t each = (4 * element_count(spec_) / kSlices + 15) / 16 * 16;
  Block whole = weights();
  Block in_slices = weights();
  AdamUpdate update{.parameters = spec_, .options = {.weight_decay = 0.1F, .decoupled = true}};
  Block m = parameters(spec_);
  Block v = parameters(spec_);
  std::vector<Block> slices_of_m;
  std::vector<Block> slices_of_v;
  for (std::size_t rank = 0; rank < kSlices; ++rank) {
    slices_of_m.push_back(bytes(um::Bytes{each * sizeof(float)}));
    slices_of_v.push_back(bytes(um::Bytes{each * sizeof(float)}));
  }
  for (const unsigned step : {1U, 2U}) {
    const StepContext context{.step = step, .learning_rate = 0.25F};
    Block dw = parameters(spec_, host::random_values(element_count(spec_), 2 + step));
    update.part = {};
    run(update, {&whole, &m, &v, &dw, &whole, &m, &v}, context);
    for (std::size_t rank = 0; rank < kSlices; ++rank) {
      update.part.slice = FloatRange{.begin = rank * each, .end = (rank + 1) * each};
      run(update,
          {&in_slices, &slices_of_m[rank], &slices_of_v[rank], &dw, &dw, &slices_of_m[rank],
           &slices_of_v[rank]},
          context);
    }
    run(TakeParameters{.parameters = spec_}, {&dw, &in_slices});
    EXPECT_EQ(in_slices.bytes(), whole.bytes());
  }
  EXPECT_NE(in_slices.bytes(), weights().bytes());
}

// The last one is large enough for a team of threads.
INSTANTIATE_TEST_SUITE_P(Specs, PartsOfParameters,
                         ::testing::Values(LinearParameters{30, {6, 3, 4}, true},
                                           LinearParameters{33, {50, 1, 1}, false},
                                           LinearParameters{100, {400, 2, 1}, true}));

}  // namespace
}  // namespace spillway::test
