// Which kernels of attention a step may use.

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "src/step/machine_size_model.h"
#include "src/step/step.h"
#include "tests/refusal.h"
#include "tests/src/step_tasks.h"

namespace spillway {
namespace {

// As a GPU's with two of cuDNN's kernels.
class TwoAttentions final : public MachineSizeModel {
 public:
  [[nodiscard]] std::vector<AlgorithmInfo> algorithms(const Operation& operation) const override {
    std::vector<AlgorithmInfo> all = MachineSizeModel::algorithms(operation);
    if (std::holds_alternative<AttentionForward>(operation) ||
        std::holds_alternative<AttentionBackward>(operation)) {
      all.push_back({.name = "engine2", .workspace = {}});
      all.push_back({.name = "engine1", .workspace = {}});
    }
    return all;
  }
};

TEST(AttentionChoice, IsOfAllTheFirstOrTheFirstOfCudnns) {
  using Names = std::vector<std::string>;
  const nets::Network net = nets::build_network("gpt:1,2,16,8");
  const auto algorithms = [&](const SizeModel& sizes, const StepOptions& options) {
    const Step step = make_training_step(net, sizes, options);
    Names names;
    for (const char* const task : {"h.0.attn.forward", "h.0.attn.backward"}) {
      Names each;
      for (const auto& algorithm : test::find_task(step, task)->algorithms) {
        each.push_back(algorithm.name);
      }
      EXPECT_TRUE(names.empty() || names == each);
      names = each;
    }
    return names;
  };
  const TwoAttentions sizes;
  EXPECT_EQ(algorithms(sizes, {}), (Names{"default", "engine2", "engine1"}));
  EXPECT_EQ(algorithms(sizes, {.convolution = ConvolutionAlgorithm::kDirect}), Names{"default"});
  EXPECT_EQ(algorithms(sizes, {.attention = AttentionAlgorithm::kOwn}), Names{"default"});
  EXPECT_EQ(algorithms(sizes, {.convolution = ConvolutionAlgorithm::kDirect,
                               .attention = AttentionAlgorithm::kCudnn}),
            Names{"engine2"});
  EXPECT_EQ(test::refusal([&] {
              return algorithms(MachineSizeModel{}, {.attention = AttentionAlgorithm::kCudnn});
            }),
            "cuDNN has no attention for this: it takes an NVIDIA GPU, bf16, no dropout, and heads "
            "whose width is a multiple of 8; leave out --attention cudnn");
}

}  // namespace
}  // namespace spillway
