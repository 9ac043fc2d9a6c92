#include "src/program/machine_size_model.h"

#include <gtest/gtest.h>

#include "nets/builder.h"
#include "src/program/step.h"
#include "tests/src/step_tasks.h"

namespace spillway {
namespace {

using namespace um::literals;
using test::find_block;
using test::find_task;

// A convolution from 2 to 4 channels on 2 images of 8 x 8, and a linear layer to 3 classes.
Step narrow_step(Precision precision) {
  nets::Builder builder{"narrow", {.channels = 2, .height = 8, .width = 8}};
  const nets::NodeId x =
      builder.convolution("conv", builder.input(),
                          {.channels = 4, .kernel = nets::square(3), .padding = nets::square(1)});
  const nets::Network net = builder.build(builder.linear("fc", x, {.features = 3}));
  return make_training_step(net, MachineSizeModel{precision}, {.batch = 2});
}

TEST(MachineSizeModel, HalvesActivationsInBf16AndAddsACopyOfWeights) {
  const Step fp32 = narrow_step(Precision::kFp32);
  const Step bf16 = narrow_step(Precision::kBf16);
  EXPECT_EQ(find_block(fp32, "images")->size, 1024_B);  // 2 x 2 x 64 floats
  EXPECT_EQ(find_block(bf16, "images")->size, 512_B);
  // 4 x 2 x 9 weights and 4 biases: 76 floats, and as many half as large.
  EXPECT_EQ(find_block(fp32, "conv")->size, 304_B);
  EXPECT_EQ(find_block(bf16, "conv")->size, 456_B);
}

TEST(MachineSizeModel, HalvesTheTrafficOfKernelsInBf16ButNotOfUpdates) {
  const Step fp32 = narrow_step(Precision::kFp32);
  const Step bf16 = narrow_step(Precision::kBf16);
  EXPECT_EQ(find_task(fp32, "conv.forward")->traffic, 2 * find_task(bf16, "conv.forward")->traffic);
  // Five blocks of 76 floats, and the copy that is written.
  EXPECT_EQ(find_task(fp32, "conv.update")->traffic, 1520_B);
  EXPECT_EQ(find_task(bf16, "conv.update")->traffic, 1672_B);
}

TEST(MachineSizeModel, HasFastConvolutionsWhereNoTensorCoresMultiply) {
  EXPECT_EQ(find_task(narrow_step(Precision::kFp32), "conv.forward")->algorithms.size(), 2U);
  EXPECT_EQ(find_task(narrow_step(Precision::kTf32), "conv.forward")->algorithms.size(), 1U);
  EXPECT_EQ(find_task(narrow_step(Precision::kBf16), "conv.forward")->algorithms.size(), 1U);
}

// The logits of all tokens, in training and at evaluation; of more than 64 MiB, a chunk of 64 MiB
// or of 1,024 tokens.
TEST(MachineSizeModel, GivesALossOverAVocabularyAChunkOfItsLogits) {
  const auto workspace = [](std::size_t tokens, std::size_t vocabulary, auto make_step) {
    nets::Builder builder{"text", nets::tokens(tokens)};
    const nets::NodeId x = builder.add(
        "wte", nets::Embedding{.vocabulary = vocabulary, .features = 4}, {builder.input()});
    const nets::Network net = builder.build(x, {.vocabulary = vocabulary}, {});
    const Step step = make_step(net, MachineSizeModel{}, StepOptions{.batch = 2});
    return find_task(step, "loss.forward")->algorithms.front().workspace;
  };
  EXPECT_EQ(workspace(6, 50, make_training_step), um::Bytes{2 * 6 * 50 * sizeof(float)});
  EXPECT_EQ(workspace(6, 50, make_evaluation_step), um::Bytes{2 * 6 * 50 * sizeof(float)});
  EXPECT_EQ(workspace(1U << 20U, 50, make_training_step), um::Bytes{64ULL << 20U});
  EXPECT_EQ(workspace(1024, 1U << 15U, make_training_step),
            um::Bytes{1024 * (1ULL << 15U) * sizeof(float)});
}

}  // namespace
}  // namespace spillway
