// Trains small transformers on a GPU, with our attention and with cuDNN's.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "nets/families/published_networks.h"
#include "src/cuda/cuda_backend.h"
#include "tests/gpu.h"
#include "tests/src/network_in_memory.h"

namespace spillway::cuda {
namespace {

constexpr std::size_t kTexts = 4;
constexpr std::uint64_t kSteps = 3;
constexpr std::size_t kWords = 61;

class AttentionTraining : public ::testing::TestWithParam<AttentionAlgorithm> {
 protected:
  void SetUp() override { testing::require_gpu(); }

  struct Trained {
    std::vector<float> losses;
    std::vector<test::BlockNumbers> state;
  };
  // Heads of 16; two query heads share each key head.
  static nets::Network network() {
    return nets::llama(
        "small-llama",
        {.layers = 2, .heads = 4, .kv_heads = 2, .width = 64, .hidden = 96, .context = 80},
        nets::tokens(77), kWords);
  }
  static Trained trained(AttentionAlgorithm attention, MemoryMode mode) {
    test::NetworkInMemory net{open_context({.precision = Precision::kBf16,
                                            .deterministic = true,
                                            .managed_limit = um::Bytes{16ULL << 30U},
                                            .managed_share = 0.25}),
                              network(),
                              {.batch = kTexts,
                               .convolution = ConvolutionAlgorithm::kDirect,
                               .attention = attention,
                               .optimizer = AdamOptions{}},
                              mode};
    net.session().state().initialise(1);
    Trained trained;
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      const Batch batch = test::drawn_batch(net.network(), kTexts, step);
      trained.losses.push_back(
          net.session()
              .train({.seed = 1, .step = step, .learning_rate = 1e-3F, .batch = &batch})
              .loss);
    }
    trained.state = test::numbers_of(net.session().state(), net.training_step());
    return trained;
  }
};

TEST_P(AttentionTraining, HasTheSameBitsInAnyMemory) {
  const Trained resident = trained(GetParam(), MemoryMode::kResident);
  for (const MemoryMode mode : {MemoryMode::kResident, MemoryMode::kManaged, MemoryMode::kCopy}) {
    SCOPED_TRACE(to_string(mode));
    const Trained within = trained(GetParam(), mode);
    EXPECT_EQ(within.losses, resident.losses);
    ASSERT_EQ(within.state.size(), resident.state.size());
    for (std::size_t b = 0; b < within.state.size(); ++b) {
      EXPECT_EQ(within.state[b].values, resident.state[b].values) << within.state[b].name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, AttentionTraining,
                         ::testing::Values(AttentionAlgorithm::kOwn, AttentionAlgorithm::kCudnn),
                         [](const auto& given) {
                           return given.param == AttentionAlgorithm::kOwn ? "Own" : "Cudnn";
                         });

}  // namespace
}  // namespace spillway::cuda
