// Trainings of small transformers of each family: where their tensors are changes no bit, and a
// batch in sub-batches is the whole batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "nets/families/published_networks.h"
#include "tests/src/network_in_memory.h"

namespace spillway {
namespace {

using test::BlockNumbers;
using test::NetworkInMemory;

constexpr std::size_t kTexts = 5;
constexpr std::uint64_t kTextSteps = 3;
constexpr std::size_t kWords = 37;

struct SmallTransformer {
  std::string name;
  nets::Network (*make)();
};

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const SmallTransformer& c, std::ostream* out) { *out << c.name; }

nets::Network small_gpt() {
  return nets::gpt("small-gpt", {.layers = 2, .heads = 3, .width = 48, .context = 32},
                   nets::tokens(30), kWords);
}
nets::Network small_llama() {
  return nets::llama(
      "small-llama",
      {.layers = 2, .heads = 4, .kv_heads = 2, .width = 48, .hidden = 72, .context = 32},
      nets::tokens(27), kWords);
}
nets::Network small_bert() {
  return nets::bert("small-bert", {.layers = 2, .heads = 2, .width = 48, .context = 32},
                    nets::tokens(32), kWords);
}
nets::Network small_vit() {
  return nets::vit("small-vit", {.layers = 2, .heads = 3, .width = 48, .patch = 4},
                   {.channels = 3, .height = 16, .width = 24}, kWords);
}

class TransformerTraining : public testing::TestWithParam<SmallTransformer> {
 protected:
  [[nodiscard]] static nets::Network network(float dropout) {
    nets::Network network = GetParam().make();
    nets::set_dropout(network, dropout);
    return network;
  }
  [[nodiscard]] static StepOptions options() {
    return {.batch = kTexts,
            .convolution = ConvolutionAlgorithm::kDirect,
            .optimizer = AdamOptions{.weight_decay = 0.01F, .decoupled = true, .clip_norm = 0.5F}};
  }
  static double largest_of(const BlockNumbers& block) {
    double largest = 0;
    for (const float value : block.values) largest = std::max(largest, std::abs(double{value}));
    return largest;
  }
  static std::vector<BlockNumbers> trained(NetworkInMemory net) {
    net.session().state().initialise(1);
    for (std::uint64_t step = 0; step < kTextSteps; ++step) {
      const Batch batch = test::drawn_batch(net.network(), kTexts, step);
      const StepReport report =
          net.session().train({.seed = 1, .step = step, .learning_rate = 1e-3F, .batch = &batch});
      EXPECT_TRUE(std::isfinite(report.loss));
    }
    return test::numbers_of(net.session().state(), net.training_step());
  }
};

TEST_P(TransformerTraining, HasTheSameBitsInAnyMemory) {
  const auto resident = trained({network(0.2F), options(), MemoryMode::kResident});
  for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    const auto within = trained({network(0.2F), options(), mode});
    ASSERT_EQ(within.size(), resident.size());
    for (std::size_t b = 0; b < within.size(); ++b) {
      EXPECT_EQ(within[b].values, resident[b].values) << within[b].name;
    }
  }
}

// Sums over the batch are added up in another order: each of at most 160 numbers, in three steps, a
// rounding of 2^-24 of what the largest of a block come to.
TEST_P(TransformerTraining, AddsUpTheGradientsOfSubBatches) {
  StepOptions sgd = options();
  sgd.optimizer = SgdOptions{.momentum = 0.5F, .clip_norm = 2};
  const auto whole = trained({network(0.2F), sgd, MemoryMode::kResident});
  const auto cut = trained({network(0.2F), sgd, MemoryMode::kManaged, 2});
  ASSERT_EQ(cut.size(), whole.size());
  for (std::size_t b = 0; b < cut.size(); ++b) {
    ASSERT_EQ(cut[b].values.size(), whole[b].values.size()) << whole[b].name;
    const double tolerance = 2e-6 * (1 + largest_of(whole[b]));
    for (std::size_t i = 0; i < cut[b].values.size(); ++i) {
      ASSERT_NEAR(cut[b].values[i], whole[b].values[i], tolerance) << whole[b].name << ' ' << i;
    }
  }
}

std::string word(const testing::TestParamInfo<SmallTransformer>& given) {
  std::string name = given.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(OfEachFamily, TransformerTraining,
                         testing::Values(SmallTransformer{"small-gpt", small_gpt},
                                         SmallTransformer{"small-llama", small_llama},
                                         SmallTransformer{"small-bert", small_bert},
                                         SmallTransformer{"small-vit", small_vit}),
                         word);

}  // namespace
}  // namespace spillway
