// What a network expects behind a text, and the texts that it makes.

#include "src/train/next_token_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "nets/families/published_networks.h"
#include "src/io/text/text_codec.h"
#include "src/run/executor.h"
#include "src/train/token_sampler.h"
#include "src/train/trained_text_model.h"
#include "tests/src/network_in_memory.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using test::NetworkInMemory;
using Tokens = std::vector<std::int32_t>;
using MakeNetwork = nets::Network (*)(const nets::Shape& text, std::size_t vocabulary);

constexpr std::size_t kContext = 40;

nets::Network gpt_to_sample(const nets::Shape& text, std::size_t vocabulary) {
  return nets::gpt("tiny-gpt", {.layers = 1, .heads = 2, .width = 32, .context = kContext}, text,
                   vocabulary);
}
nets::Network llama_to_sample(const nets::Shape& text, std::size_t vocabulary) {
  return nets::llama(
      "tiny-llama",
      {.layers = 2, .heads = 4, .kv_heads = 2, .width = 24, .hidden = 40, .context = kContext},
      text, vocabulary);
}

nets::CatalogueEntry entry_of(MakeNetwork make, std::size_t tokens, std::size_t vocabulary) {
  return {.name = "tiny",
          .description = {},
          .image = nets::tokens(tokens),
          .classes = vocabulary,
          .build = make};
}

// A network in training, and the same to sample from.
class Sampled {
 public:
  Sampled(MakeNetwork make, std::size_t tokens, std::size_t vocabulary,
          const std::stop_token& stop = {})
      : training{make(nets::tokens(tokens), vocabulary),
                 {.batch = 8, .optimizer = AdamOptions{}},
                 MemoryMode::kResident},
        model{context, entry_of(make, tokens, vocabulary), stop} {
    training.session().state().initialise(1);
  }

  void take_weights() {
    const test::TemporaryFolder folder;
    training.session().state().save(folder.file("weights"));
    model.state().load(folder.file("weights"));
  }

  NetworkInMemory training;
  ExecutionContext context = test::small_context();
  NextTokenModel model;
};

double loss(std::span<const float> logits, std::int32_t label) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  return std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(label)]);
}

class NextTokens : public testing::TestWithParam<MakeNetwork> {};

// The evaluation's loss is the sum over all tokens, each of which sees those before it.
TEST_P(NextTokens, AreExpectedAsAnEvaluationSays) {
  constexpr std::size_t kTokens = 37;
  Sampled net{GetParam(), kTokens, 61};
  net.take_weights();
  const Batch batch = test::drawn_batch(net.training.network(), 8, 3);
  const double all = static_cast<double>(net.training.session().evaluate({.batch = &batch}).loss);
  double sum = 0;
  for (std::size_t n = 0; n < 8; ++n) {
    Tokens text;
    for (std::size_t t = n * kTokens; t < (n + 1) * kTokens; ++t) {
      text.push_back(static_cast<std::int32_t>(batch.images[t]));
      sum += loss(net.model.logits(text), batch.labels[t]);
    }
  }
  EXPECT_NEAR(sum, all, 1e-5 * all);
}

TEST_P(NextTokens, DoNotDependOnTheTextBefore) {
  Sampled net{GetParam(), kContext, 61};
  net.take_weights();
  const auto logits = [&](const Tokens& text) {
    const std::span<const float> made = net.model.logits(text);
    return std::vector<float>{made.begin(), made.end()};
  };
  const std::vector<float> first = logits({5, 6, 7});
  static_cast<void>(logits(Tokens(kContext, 9)));
  EXPECT_EQ(logits({5, 6, 7}), first);
  EXPECT_NE(logits({5, 6, 8}), first);
}

INSTANTIATE_TEST_SUITE_P(OfEachFamily, NextTokens, testing::Values(gpt_to_sample, llama_to_sample));

constexpr std::string_view kSentence = "the quick brown fox jumps over the lazy dog. ";

// Windows of the sentence said again and again, which begin at drawn places.
Batch windows_of_sentence(std::size_t count, std::size_t tokens, std::uint64_t step) {
  Batch batch;
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t first = (step * count + n) * 17;
    for (std::size_t t = 0; t < tokens; ++t) {
      batch.images.push_back(static_cast<float>(kSentence[(first + t) % kSentence.size()]));
      batch.labels.push_back(kSentence[(first + t + 1) % kSentence.size()]);
    }
  }
  return batch;
}

std::string continued(NextTokenModel& model, const std::string& prompt, std::size_t count,
                      const SamplingOptions& options) {
  const std::unique_ptr<TextCodec> codec = make_byte_codec();
  TokenSampler sampler{options};
  std::string text;
  continue_text(model, sampler, codec->encode(prompt), codec->size(), count,
                [&](std::int32_t token) { text += codec->text(token); });
  return text;
}

// A text several times as long as the network looks.
TEST(ContinuedText, IsTheOneThatWasLearntByHeart) {
  constexpr std::size_t kTokens = 24;
  Sampled net{gpt_to_sample, kTokens, 128};
  float last = 0;
  for (std::uint64_t step = 0; step < 250; ++step) {
    const Batch batch = windows_of_sentence(8, kTokens, step);
    last = net.training.session()
               .train({.seed = 1, .step = step, .learning_rate = 5e-3F, .batch = &batch})
               .loss;
  }
  EXPECT_LT(last, 0.2F);  // only the first tokens of a window leave anything open
  net.take_weights();
  std::string wanted;
  for (int i = 0; i < 3; ++i) wanted += kSentence;
  EXPECT_EQ("the quick" + continued(net.model, "the quick", wanted.size() - 9, {.temperature = 0}),
            wanted);
}

TEST(ContinuedText, HasOnlyTokensThatAreKnown) {
  Sampled net{gpt_to_sample, kContext, 61};
  net.take_weights();
  TokenSampler sampler{{.temperature = 5}};
  Tokens made;
  continue_text(net.model, sampler, {1}, 4, 60, [&](std::int32_t token) { made.push_back(token); });
  EXPECT_EQ(made.size(), 60U);
  EXPECT_LT(std::ranges::max(made), 4);
  EXPECT_NE(std::ranges::min(made), std::ranges::max(made));
}

TEST(ContinuedText, EndsWhenAStopIsRequested) {
  std::stop_source stop;
  Sampled net{gpt_to_sample, kContext, 61, stop.get_token()};
  net.take_weights();
  TokenSampler sampler{{}};
  std::size_t made = 0;
  try {
    continue_text(net.model, sampler, {1}, 61, 60, [&](std::int32_t /*token*/) {
      if (++made == 3) stop.request_stop();
    });
    FAIL() << "nothing stopped it";
  } catch (const Interrupted& interrupted) {
    EXPECT_STREQ(interrupted.what(), "3 of 60 tokens were made");
  }
}

TEST(WhyNoNextToken, NamesWhatTheNetworkIsNotMadeFor) {
  EXPECT_EQ(why_no_next_token(gpt_to_sample(nets::tokens(9), 61)), "");
  EXPECT_EQ(why_no_next_token(test::small_network()), "reads images");
  const nets::Network bert = nets::bert(
      "tiny-bert", {.layers = 1, .heads = 2, .width = 16, .context = 32}, nets::tokens(9), 61);
  EXPECT_NE(why_no_next_token(bert).find("hidden tokens"), std::string::npos);
}

}  // namespace
}  // namespace spillway
