#include <cstddef>
#include <vector>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::cuda {
namespace {

// Of several sizes, with and without weight decay, and more than one launch takes.
std::vector<ParameterSpec> specs() {
  std::vector<ParameterSpec> specs;
  for (std::size_t i = 1; i <= 12; ++i) {
    specs.emplace_back(BatchNormParameters{7 * i});
    specs.emplace_back(ConvolutionParameters{3 * i, 5, nets::square(3), i % 2 == 0});
    specs.emplace_back(LinearParameters{10 * i, {6, 2, 2}, true});
  }
  return specs;
}

class TogetherUpdated : public KernelRunner {
 protected:
  // `numbers` of each spec: the parameters, the optimizer's and the gradient, in the order of
  // reads.
  [[nodiscard]] std::vector<std::vector<Block>> blocks(std::size_t numbers) {
    std::vector<std::vector<Block>> all;
    unsigned seed = 0;
    for (const ParameterSpec& spec : specs()) {
      std::vector<Block>& own = all.emplace_back();
      for (std::size_t i = 0; i < numbers; ++i) {
        Values values = host::random_values(element_count(spec), ++seed);
        for (double& value : values) value *= value;  // second moments are squares
        own.push_back(parameters(spec, values));
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
    for (std::size_t i = 0; i < specs().size(); ++i) {
      Op op = like;
      op.parameters = specs()[i];
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

TEST_F(TogetherUpdated, ByAdamHaveTheBitsOfOneEach) {
  expect_bits_of_one_each(AdamUpdate{.options = {.weight_decay = 0.1F}}, 4);
}

}  // namespace
}  // namespace spillway::cuda
