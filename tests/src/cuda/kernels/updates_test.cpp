#include <cstddef>
#include <utility>
#include <vector>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::cuda {
namespace {

// What is updated.
struct Updated {
  ParameterSpec spec;
  ParameterPart part = {};
};

// Of several sizes, with and without weight decay, and more than one launch takes; some in parts.
std::vector<Updated> all_updated() {
  std::vector<Updated> all;
  for (std::size_t i = 1; i <= 12; ++i) {
    all.push_back({.spec = BatchNormParameters{7 * i}});
    all.push_back({.spec = ConvolutionParameters{3 * i, 5, nets::square(3), i % 2 == 0}});
    all.push_back({.spec = LinearParameters{10 * i, {6, 2, 2}, true}});
  }
  for (std::size_t i = 0; i < 3; ++i) {
    all.push_back(
        {.spec = LinearParameters{50, {6, 2, 2}, true}, .part = {.index = i, .count = 3}});
  }
  return all;
}

class TogetherUpdated : public KernelRunner {
 protected:
  // `numbers` of each: the parameters, the optimizer's and the gradient, in the order of reads.
  [[nodiscard]] std::vector<std::vector<Block>> blocks(std::size_t numbers) {
    std::vector<std::vector<Block>> all;
    unsigned seed = 0;
    for (const auto& [spec, part] : all_updated()) {
      std::vector<Block>& own = all.emplace_back();
      for (std::size_t i = 0; i < numbers; ++i) {
        Values values = host::random_values(element_count(spec), ++seed);
        for (double& value : values) value *= value;  // second moments are squares
        if (i == 0 || part.count == 1) {
          own.push_back(parameters(spec, values));
        } else {
          own.push_back(std::move(parts(spec, part.count, values)[part.index]));
        }
      }
    }
    return all;
  }
  // Of the update whose reads these are: it writes all but the gradient in place.
  static std::vector<std::byte*> operands(std::vector<Block>& blocks) {
    std::vector<std::byte*> addresses;
    for (Block& block : blocks) addresses.push_back(block.device.data());
    for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
      addresses.push_back(blocks[i].device.data());
    }
    return addresses;
  }

  template <class Op>
  void expect_bits_of_one_each(const Op& like, std::size_t numbers) {
    std::vector<std::vector<Block>> one_each = blocks(numbers);
    std::vector<std::vector<Block>> together = blocks(numbers);
    const StepContext context{.step = 3, .learning_rate = 0.25F};
    std::vector<Op> ops;
    std::vector<std::byte*> all;
    const std::vector<Updated> updated = all_updated();
    for (std::size_t i = 0; i < updated.size(); ++i) {
      Op op = like;
      op.parameters = updated[i].spec;
      op.part = updated[i].part;
      const auto kernel = make_kernel(machine(), op);
      machine().numbers->begin_step(context);
      kernel->run({.operands = operands(one_each[i])});
      ops.push_back(op);
      for (std::byte* operand : operands(together[i])) all.push_back(operand);
    }
    const auto kernel = make_kernel(machine(), ops);
    machine().numbers->begin_step(context);
    kernel->run({.operands = all});
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      for (std::size_t n = 0; n < numbers; ++n) {
        EXPECT_EQ(together[i][n].bytes(), one_each[i][n].bytes()) << i << ' ' << n;
        EXPECT_TRUE(together[i][n].device.guard_is_intact());
      }
    }
    EXPECT_NE(together[0][0].bytes(), blocks(numbers)[0][0].bytes());
  }
};

TEST_F(TogetherUpdated, BySgdHaveTheBitsOfOneEach) {
  expect_bits_of_one_each(
      SgdUpdate{.options = {.momentum = 0.5F, .weight_decay = 0.1F, .nesterov = true}}, 3);
}

// Without a momentum: its operands are in another order than operands() has.
TEST_F(TogetherUpdated, ByRmspropHaveTheBitsOfOneEach) {
  expect_bits_of_one_each(RmspropUpdate{.options = {.weight_decay = 0.1F}}, 3);
}

TEST_F(TogetherUpdated, ByAdamHaveTheBitsOfOneEach) {
  expect_bits_of_one_each(AdamUpdate{.options = {.weight_decay = 0.1F}}, 4);
}

}  // namespace
}  // namespace spillway::cuda
