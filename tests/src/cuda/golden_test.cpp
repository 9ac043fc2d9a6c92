// Compares whole training steps on a GPU with PyTorch, in each precision and memory mode.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nets/families/published_networks.h"
#include "src/cuda/cuda_backend.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/golden_training.h"
#include "tests/gpu.h"
#include "tests/src/network_in_memory.h"

namespace spillway::cuda {
namespace {

using test::GoldenFile;
using test::GoldenTolerance;
using test::MakeNetwork;

// Same as on the host (tests/src/golden_test.cpp), except that cuDNN may choose Winograd.
constexpr GoldenTolerance kFp32{.one_step = 8e-4, .losses = 1e-3, .statistics = 1e-3};
// TF32 rounds factors to 11 bits. PyTorch with emulated rounding differs by up to 1.3e-3 after one
// step; by 3.2e-4 in losses and 6e-4 in statistics after ten. Kernels with another order of
// summation may differ by a few times that.
constexpr GoldenTolerance kTf32{.one_step = 5e-3, .losses = 2e-3, .statistics = 5e-3};
// bfloat16 rounds every activation and gradient to 8 bits, which moves ReLUs and max pools across
// their jumps. Gradients of single blocks are then off by a third in PyTorch, so they are not
// compared. PyTorch's losses are off by up to 1.5e-2, its statistics by 5.2e-2.
constexpr GoldenTolerance kBf16{.one_step = 0, .losses = 6e-2, .statistics = 0.2};

class CudaGolden : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { testing::require_gpu(); }

  static MakeNetwork on_gpu(Precision precision, MemoryMode memory) {
    return [=](nets::Network network, const StepOptions& options) {
      ExecutionContext context = open_context({.precision = precision,
                                               .deterministic = true,
                                               .managed_limit = um::Bytes{16ULL << 30U},
                                               .managed_share = 0.25});
      return std::make_unique<test::NetworkInMemory>(std::move(context), std::move(network),
                                                     options, memory);
    };
  }
  const GoldenFile golden_ = GoldenFile::read(GetParam());
};

TEST_P(CudaGolden, StepsInFp32AreThoseOfPyTorchInEachMemory) {
  for (const MemoryMode memory : {MemoryMode::kResident, MemoryMode::kManaged, MemoryMode::kCopy}) {
    SCOPED_TRACE(to_string(memory));
    expect_golden_gradients(golden_, on_gpu(Precision::kFp32, memory), kFp32);
    expect_golden_losses(golden_, on_gpu(Precision::kFp32, memory), kFp32);
  }
}

TEST_P(CudaGolden, StepsWithOtherOptimizersAreThoseOfPyTorch) {
  expect_golden_losses_with_others(golden_, on_gpu(Precision::kFp32, MemoryMode::kResident), kFp32);
}

TEST_P(CudaGolden, StepsInTf32AreAboutThoseOfPyTorch) {
  const MakeNetwork make = on_gpu(Precision::kTf32, MemoryMode::kResident);
  expect_golden_gradients(golden_, make, kTf32);
  expect_golden_losses(golden_, make, kTf32);
}

TEST_P(CudaGolden, LossesInBf16AreAboutThoseOfPyTorch) {
  expect_golden_losses(golden_, on_gpu(Precision::kBf16, MemoryMode::kResident), kBf16);
}

INSTANTIATE_TEST_SUITE_P(Networks, CudaGolden,
                         ::testing::Values("chain", "residual", "branches", "joined"),
                         [](const auto& given) { return std::string{given.param}; });

// Trains small transformers on a GPU, with our attention and with cuDNN's.

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
