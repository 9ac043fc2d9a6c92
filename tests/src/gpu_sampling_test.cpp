// Logits by way of a GPU's streams, with texts that wait in its near memory.

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nets/families/published_networks.h"
#include "src/sample/next_token_model.h"
#include "tests/src/gpu_training.h"

namespace spillway::test {
namespace {

constexpr std::size_t kWords = 23;

nets::Network gpt_of(const nets::Shape& text, std::size_t vocabulary) {
  return nets::gpt("tiny", {.layers = 1, .heads = 2, .width = 16, .context = 40}, text, vocabulary);
}

// Of two texts in the shorter step and two in the longer one: kernels that are not declared to the
// driver are in no graph that it repeats from the third on.
std::vector<std::vector<float>> logits_on(Opened opened) {
  NextTokenModel model{opened.context,
                       {.name = "tiny",
                        .description = {},
                        .image = nets::tokens(40),
                        .classes = kWords,
                        .build = gpt_of}};
  model.state().initialise(3);
  std::vector<std::vector<float>> all;
  for (const std::size_t length : {3U, 7U, 20U, 18U}) {
    std::vector<std::int32_t> text(length);
    for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<std::int32_t>(i * i % kWords);
    const std::span<const float> logits = model.logits(text);
    all.emplace_back(logits.begin(), logits.end());
  }
  return all;
}

TEST(GpuSampling, HasTheLogitsOfTheHost) {
  EXPECT_EQ(logits_on(recorded_gpu(um::CudaFacts{})), logits_on(this_machine()));
}

}  // namespace
}  // namespace spillway::test
