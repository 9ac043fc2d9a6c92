#include <array>
#include <optional>
#include <vector>

#include "tests/src/every_optimizer.h"
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

TEST_P(PartsOfParameters, AreUpdatedWithTheBitsOfTheWhole) {
  for (const OptimizerOptions& options : every_optimizer()) {
    SCOPED_TRACE(printed(options));
    UpdateParameters update{.parameters = spec_, .options = options};
    Block whole = weights();
    Block in_parts = weights();
    std::vector<Numbers> numbers;  // optimizer state and gradient
    for (unsigned i = 1; i < update.read_count(); ++i) numbers.push_back(numbers_of(1 + i));
    std::vector<Block*> blocks{&whole};
    for (Numbers& each : numbers) blocks.push_back(&each.whole);
    run(update, operands_of_update(update, blocks, &whole), context_);
    for (std::size_t i = 0; i < kParts; ++i) {
      update.part = {.index = i, .count = kParts};
      blocks = {&in_parts};
      for (Numbers& each : numbers) blocks.push_back(&each.parts[i]);
      run(update, operands_of_update(update, blocks, &in_parts), context_);
    }
    EXPECT_EQ(in_parts.bytes(), whole.bytes());
    EXPECT_NE(in_parts.bytes(), weights().bytes());
    for (Numbers& each : numbers) expect_same(each);
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
  for (const OptimizerOptions& options : every_optimizer()) {
    SCOPED_TRACE(printed(options));
    const UpdateParameters update{.parameters = spec_, .options = options};
    Block whole = weights();
    Block in_slices = weights();
    std::vector<Block> state;
    std::array<std::vector<Block>, kSlices> slices_of_state;
    for (std::size_t i = 0; i < states_of(options).size(); ++i) {
      state.push_back(parameters(spec_));
      for (auto& own : slices_of_state) own.push_back(bytes(float_bytes(each)));
    }
    const auto update_one = [&](Block& w, std::vector<Block>& own, Block& dw, Block& written,
                                const StepContext& context, const auto& slice) {
      std::vector<Block*> blocks{&w};
      for (Block& block : own) blocks.push_back(&block);
      blocks.push_back(&dw);
      UpdateParameters of_slice = update;
      of_slice.part.slice = slice;
      run(of_slice, operands_of_update(of_slice, blocks, &written), context);
    };
    for (const unsigned step : {1U, 2U}) {
      const StepContext context{.step = step, .learning_rate = 0.25F};
      Block dw = parameters(spec_, host::random_values(element_count(spec_), 2 + step));
      update_one(whole, state, dw, whole, context, std::nullopt);
      for (std::size_t rank = 0; rank < kSlices; ++rank) {
        update_one(in_slices, slices_of_state[rank], dw, dw, context,
                   FloatRange{.begin = rank * each, .end = (rank + 1) * each});
      }
      run(TakeParameters{.parameters = spec_}, {&dw, &in_slices});
      EXPECT_EQ(in_slices.bytes(), whole.bytes());
    }
    EXPECT_NE(in_slices.bytes(), weights().bytes());
  }
}

// The last one is large enough for a team of threads.
INSTANTIATE_TEST_SUITE_P(Specs, PartsOfParameters,
                         ::testing::Values(LinearParameters{30, {6, 3, 4}, true},
                                           LinearParameters{33, {50, 1, 1}, false},
                                           LinearParameters{100, {400, 2, 1}, true}));

}  // namespace
}  // namespace spillway::test
