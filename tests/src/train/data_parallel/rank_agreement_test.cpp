// Settings that ranks must share before they train together: all ranks report a difference. The
// first rank prints the warnings of the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nets/builder.h"
#include "src/ranks/thread_communicator.h"
#include "src/train/data_parallel/rank_warnings.h"
#include "src/train/trainer.h"
#include "src/train/training_inputs.h"
#include "tests/src/io/images/image_files.h"
#include "tests/src/ranks/on_ranks.h"
#include "tests/src/small_training.h"
#include "tests/src/train/data_parallel/trained_ranks.h"

namespace spillway {
namespace {

using testing::on_ranks;
using testing::options_of;

// Images of which one may be another; the digest of all contents does not tell, as that of a
// folder's names and sizes does not.
class Numbered final : public Dataset {
 public:
  explicit Numbered(std::size_t size, std::size_t other = SIZE_MAX, std::string content = "same")
      : size_{size}, other_{other}, content_{std::move(content)} {}
  [[nodiscard]] std::string name() const override { return "numbers"; }
  [[nodiscard]] nets::Shape image() const override { return {1, 8, 8}; }
  [[nodiscard]] std::size_t classes() const override { return 3; }
  [[nodiscard]] std::size_t size() const override { return size_; }
  [[nodiscard]] std::int32_t label(std::size_t /*index*/) const override { return 0; }
  void read(std::size_t index, std::span<float> image) const override {
    std::ranges::fill(image, static_cast<float>(index) + (index == other_ ? 0.5F : 0.F));
  }
  [[nodiscard]] std::string content_sha256() const override { return content_; }

 private:
  std::size_t size_;
  std::size_t other_;
  std::string content_;
};

DatasetPair pair_of(Numbered train, std::vector<std::string> class_names = {}) {
  return {.train = std::make_unique<Numbered>(std::move(train)),
          .test = std::make_unique<Numbered>(10),
          .class_names = std::move(class_names)};
}

// Returns the sentence of three ranks, the last one with the data of `other`; empty if they agree.
std::string said_of(const std::function<DatasetPair()>& usual,
                    const std::function<DatasetPair()>& other) {
  ThreadRanks group{3};
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    const DatasetPair data = communicator.rank() == 2 ? other() : usual();
    expect_ranks_agree({.network = test::small_network(), .ranks = {.communicator = communicator}},
                       data, test::small_context());
  });
  for (const std::string& error : errors) EXPECT_EQ(error, errors[0]);
  return errors[0];
}

TEST(RankAgreement, IsOfSamplesAllOverTheData) {
  const auto usual = [] { return pair_of(Numbered{631}); };
  EXPECT_EQ(said_of(usual, usual), "");
  for (const std::size_t other : {0U, 10U, 20U, 300U, 620U, 630U}) {  // 64 of 631: each tenth
    const std::string said = said_of(usual, [&] { return pair_of(Numbered{631, other}); });
    EXPECT_EQ(said.find("the ranks differ in data: ranks 0 and 1"), 0U) << said;
    EXPECT_NE(said.find("rank 2"), std::string::npos) << said;
    EXPECT_NE(said.find("; copy the same data to the machines of all ranks"), std::string::npos);
  }
  const auto few = [](std::size_t other) {
    return [other] { return pair_of(Numbered{40, other}); };
  };
  for (std::size_t i = 0; i < 40; ++i) EXPECT_NE(said_of(few(SIZE_MAX), few(i)), "") << i;
}

TEST(RankAgreement, IsOfAllContentsAndOfNumbers) {
  const auto usual = [] { return pair_of(Numbered{9}); };
  EXPECT_NE(said_of(usual,
                    [] {
                      return pair_of(Numbered{9, SIZE_MAX, "other"});
                    })
                .find("content other"),
            std::string::npos);
  EXPECT_NE(said_of(usual, [] { return pair_of(Numbered{8}); }).find("8 samples"),
            std::string::npos);
  EXPECT_EQ(said_of([] { return pair_of(Numbered{1}); }, [] { return pair_of(Numbered{1}); }), "");
}

TEST(RankAgreement, IsOfTheNamesOfClasses) {
  const auto named = [](const char* last) {
    return [last] { return pair_of(Numbered{9}, {"cat", "dog", last}); };
  };
  const std::string said = said_of(named("hen"), named("owl"));
  EXPECT_EQ(said.find("the ranks differ in class names: "), 0U) << said;
  EXPECT_NE(said.find("cat, dog, owl"), std::string::npos) << said;
}

// Returns the sentence of all ranks of a training in which the second one has other options.
std::string refusal_of(const std::function<void(TrainerOptions&)>& usual,
                       const std::function<void(TrainerOptions&)>& other) {
  ThreadRanks group{2};
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    TrainerOptions own = options_of(test::small_network());
    own.ranks.communicator = communicator;
    (communicator.rank() == 0 ? usual : other)(own);
    Trainer{test::small_context(), own};
  });
  EXPECT_EQ(errors[0], errors[1]);
  return errors[0];
}

// Each rank may have read them from a checkpoint of its own.
TEST(RankAgreement, IsOfAllThatACheckpointKeeps) {
  const auto usual = [](TrainerOptions& /*options*/) {};
  const std::vector<std::pair<std::string, std::function<void(TrainerOptions&)>>> others{
      {"label_smoothing", [](auto& options) { options.step.label_smoothing = 0.1F; }},
      {"average_decay", [](auto& options) { options.step.average_decay = 0.9; }},
      {"frozen", [](auto& options) { options.step.frozen = {"conv"}; }},
      {"rate", [](auto& options) { options.training.learning_rate.rate = 0.5F; }},
      {"train_samples", [](auto& options) { options.train_samples = 16; }},
      {"seed", [](auto& options) { options.training.seed = 7; }}};
  EXPECT_EQ(refusal_of(usual, usual), "");
  for (const auto& [word, other] : others) {
    const std::string said = refusal_of(usual, other);
    EXPECT_EQ(said.find("the ranks differ in settings: rank 0 on "), 0U) << said;
    EXPECT_NE(said.find(word), std::string::npos) << said;
  }
}

// The first rank's become those of all, so that others would be passed over in silence.
TEST(RankAgreement, IsOfTheWeightsToStartFrom) {
  const auto starting_from = [](float number) {
    return [number](TrainerOptions& options) {
      options.initial.values = [number](const std::string& name, std::span<float> tensor) {
        std::ranges::fill(tensor, name == "fc.bias" ? number : 0.5F);
      };
    };
  };
  EXPECT_EQ(refusal_of(starting_from(1), starting_from(1)), "");
  for (const auto& other : {std::function<void(TrainerOptions&)>{starting_from(2)},
                            std::function<void(TrainerOptions&)>{[](auto& /*drawn*/) {}}}) {
    const std::string said = refusal_of(starting_from(1), other);
    EXPECT_EQ(said.find("the ranks differ in starting weights: rank 0 on "), 0U) << said;
  }
}

TEST(RankWarnings, AreToldOnceWithTheirRank) {
  ThreadRanks group{{"node-a", "node-b", "node-b"}};
  std::vector<std::vector<std::string>> told(3);
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    const std::size_t rank = communicator.rank();
    RankWarnings warnings{communicator};
    warnings.add(rank == 2 ? "of the last one" : "of two");
    if (rank > 0) warnings.add("of the others");
    EXPECT_EQ(warnings.are_there(), rank > 0);
    told[rank] = warnings.gather();
    EXPECT_FALSE(warnings.are_there());
    EXPECT_EQ(warnings.gather(), std::vector<std::string>{});
  });
  EXPECT_EQ(errors, testing::no_errors(group));
  const std::vector<std::string> expected{"rank 1 on node-b: of the others",
                                          "rank 2 on node-b: of the last one"};
  EXPECT_EQ(told[0], expected);
  EXPECT_TRUE(told[1].empty() && told[2].empty());
}

// 16 images to learn from, every second of which is broken, on two ranks: each meets some.
TEST(RankWarnings, NameEachBrokenImageOnce) {
  const test::ImageTree tree;
  for (int i = 10; i < 22; ++i) {
    const bool is_broken = i % 3 == 0;
    tree.add("train/cat/" + std::to_string(i) + ".png",
             is_broken ? test::FileContent{'n', 'o'} : test::golden_image("rgb.png"));
  }
  nets::Builder net{"colors", {3, 8, 8}};
  TrainerOptions options = options_of(net.build(net.linear("fc", net.input(), {.features = 2})));
  options.data = "images:" + tree.path().string();
  options.images.on_broken = OnBroken::kSkip;
  options.training = {.epochs = 1, .evaluate_every = 0};
  options.training.steps = 2;
  ThreadRanks group{2};
  std::vector<std::string> heard;
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    TrainerOptions own = options;
    own.ranks.communicator = communicator;
    const bool is_first = communicator.rank() == 0;
    Trainer trainer{test::small_context(), own, {.on_warning = [&](const std::string& sentence) {
                      if (is_first) heard.push_back(sentence);
                    }}};
    EXPECT_EQ(trainer.run().broken_files, 4U);
  });
  EXPECT_EQ(errors, testing::no_errors(group));
  EXPECT_EQ(heard.size(), 4U);
  for (const int i : {12, 15, 18, 21}) {
    const std::string file = "/" + std::to_string(i) + ".png";
    EXPECT_EQ(std::ranges::count_if(heard,
                                    [&](const std::string& sentence) {
                                      return sentence.find(file) != std::string::npos;
                                    }),
              1)
        << file;
  }
  EXPECT_TRUE(std::ranges::any_of(
      heard, [](const std::string& sentence) { return sentence.starts_with("rank 1 on "); }));
}

}  // namespace
}  // namespace spillway
