// What ranks warn of that nobody hears but the first one.
#include "src/train/parts/rank_warnings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "nets/builder.h"
#include "src/ranks/thread_communicator.h"
#include "src/train/trainer.h"
#include "tests/src/data/images/image_tree.h"
#include "tests/src/ranks/on_ranks.h"
#include "tests/src/small_training.h"
#include "tests/src/train/parts/trained_ranks.h"

namespace spillway {
namespace {

using testing::on_ranks;
using testing::options_of;

TEST(RankWarnings, AreToldOnceWithTheirRank) {
  ThreadRanks group{{"node-a", "node-b", "node-b"}};
  std::vector<std::vector<std::string>> told(3);
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    const std::size_t rank = communicator.rank();
    const RankOptions options{.communicator = &communicator};
    RankWarnings warnings{options};
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
    own.ranks.communicator = &communicator;
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
