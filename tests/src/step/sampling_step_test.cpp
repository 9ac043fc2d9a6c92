// The step that ends with logits.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "prefetch/plan.h"
#include "prefetch/verify/dataflow.h"
#include "src/step/machine_size_model.h"
#include "src/step/step.h"

namespace spillway {
namespace {

constexpr std::size_t kTexts = 3;
constexpr std::size_t kVocabulary = 19;

class SamplingStep : public testing::TestWithParam<const char*> {
 protected:
  MachineSizeModel size_model;
  nets::Network net =
      nets::build_network(GetParam(), {.image = nets::tokens(8), .classes = kVocabulary});
  Step evaluation = make_evaluation_step(net, size_model, {.batch = kTexts});
  Step sampling = make_sampling_step(net, size_model, {.batch = kTexts});
};

TEST_P(SamplingStep, IsAnEvaluationButForItsEnd) {
  ASSERT_EQ(sampling.graph.tasks.size(), evaluation.graph.tasks.size());
  for (std::size_t t = 0; t + 1 < sampling.graph.tasks.size(); ++t) {
    EXPECT_EQ(sampling.graph.tasks[t].name, evaluation.graph.tasks[t].name);
  }
  ASSERT_EQ(sampling.state.size(), evaluation.state.size());
  for (std::size_t i = 0; i < sampling.state.size(); ++i) {
    EXPECT_EQ(sampling.state[i].name, evaluation.state[i].name);
    EXPECT_EQ(sampling.state[i].spec, evaluation.state[i].spec);
  }
}

TEST_P(SamplingStep, EndsWithTheLogitsOfEachText) {
  EXPECT_TRUE(std::holds_alternative<VocabularyLogits>(sampling.launches.back().operation));
  EXPECT_EQ(sampling.launches.back().operands.back(), sampling.result);
  EXPECT_EQ(sampling.graph[sampling.result].size, float_bytes(kTexts * kVocabulary));
}

TEST_P(SamplingStep, ReadsNothingThatWasNotWrittenBefore) {
  const auto violation =
      prefetch::check_dataflow(sampling.graph, prefetch::runs_in_order(sampling.graph));
  EXPECT_FALSE(violation) << violation->reason;
}

INSTANTIATE_TEST_SUITE_P(OfNetworks, SamplingStep,
                         testing::Values("gpt:1,2,16,32", "llama:1,2,1,16,24,32"));

}  // namespace
}  // namespace spillway
