#include "src/train/train.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "src/io/data/synthetic.h"
#include "tests/refusal.h"
#include "tests/src/small_training.h"

namespace spillway {
namespace {

using test::refusal;
using Steps = std::vector<std::uint64_t>;

constexpr nets::Shape kImage{.channels = 1, .height = 8, .width = 8};

// Ten images in batches of three: three steps an epoch.
DatasetPair small_data() {
  return {.train = std::make_unique<SyntheticDataset>(kImage, 3, 10, 1, Split::kTrain),
          .test = std::make_unique<SyntheticDataset>(kImage, 3, 4, 1, Split::kTest)};
}

class Train : public testing::Test {
 protected:
  Train() { training.session.state().initialise(1); }
  void train(const TrainOptions& options, const TrainingStart& start = {}) {
    spillway::train(training.session, data, options,
                    {.on_step =
                         [&](auto step, auto epoch, const StepReport& report) {
                           steps[step] = epoch;
                           rates.push_back(report.learning_rate);
                         },
                     .on_evaluation =
                         [&](auto step, auto, const Evaluation&) {
                           evaluated.push_back(step);
                           return after_evaluation;
                         },
                     .on_checkpoint = [&](auto step) { saved.push_back(step); }},
                    is_stopped, start);
  }

  DatasetPair data = small_data();
  test::SmallTraining training{test::small_network(), 3};
  std::map<std::uint64_t, std::uint64_t> steps;  // the epoch of each
  std::vector<float> rates;
  Steps evaluated;
  AfterEvaluation after_evaluation = AfterEvaluation::kGoOn;
  Steps saved;
  std::function<bool()> is_stopped;
};

TEST_F(Train, EndsWithTheEpochsWhenTheyAreFewerSteps) {
  train({.steps = 100, .epochs = 2});
  EXPECT_EQ(steps, (std::map<std::uint64_t, std::uint64_t>{
                       {1, 1}, {2, 1}, {3, 1}, {4, 2}, {5, 2}, {6, 2}}));
  EXPECT_EQ(evaluated, (Steps{3, 6}));
  EXPECT_EQ(saved, (Steps{3, 6}));
}

TEST_F(Train, EndsWithTheStepsWhenTheyAreFewerThanTheEpochs) {
  train({.steps = 4, .epochs = 2});
  EXPECT_EQ(steps.rbegin()->first, 4U);
  EXPECT_EQ(evaluated, Steps{3});
  EXPECT_EQ(saved, (Steps{3, 4}));
}

// (2^64 - 1) / 3 + 1 epochs of three steps are 2^64 + 2 steps, which are 2 in 64 bits.
TEST_F(Train, MayHaveMoreEpochsThanCanBeCounted) {
  train({.steps = 5, .epochs = std::numeric_limits<std::uint64_t>::max() / 3 + 1});
  EXPECT_EQ(steps.size(), 5U);
}

TEST_F(Train, CountsFromTheVeryBeginningWhenItGoesOn) {
  train({.epochs = 2}, {.step = 4});
  EXPECT_EQ(steps, (std::map<std::uint64_t, std::uint64_t>{{5, 2}, {6, 2}}));
}

TEST_F(Train, DoesNothingWhenAllStepsAreDone) {
  train({.steps = 4}, {.step = 4});
  EXPECT_TRUE(steps.empty());
  EXPECT_TRUE(saved.empty());
}

TEST_F(Train, SavesAsOftenAsAskedAndAtTheEnd) {
  train({.steps = 7, .checkpoint_every = 2});
  EXPECT_EQ(saved, (Steps{2, 4, 6, 7}));
}

// The fourth call is before the first batch of the evaluation that follows the third step.
TEST_F(Train, IsStoppedInAnEvaluation) {
  is_stopped = [calls = 0]() mutable { return ++calls == 4; };
  EXPECT_THROW(train({.epochs = 2}), Interrupted);
  EXPECT_EQ(steps.rbegin()->first, 3U);
  EXPECT_TRUE(evaluated.empty());
  EXPECT_EQ(saved, Steps{3});
}

TEST_F(Train, SaysWhatIsLeftWhereItIsStopped) {
  struct Stop {
    TrainOptions options;
    int call = 0;
    std::string left;
  };
  for (const auto& [options, call, left] :
       {Stop{{.steps = 4, .evaluate_every = 0}, 3, "and --resume goes on from there"},
        Stop{{.steps = 3, .evaluate_every = 0}, 3, "the last one: nothing is left to train"},
        Stop{{.steps = 3}, 3, "the last one, and --resume evaluates it"},
        Stop{{.steps = 3}, 4, "the last one, and --resume evaluates it"}}) {  // while it evaluates
    is_stopped = [calls = 0, last = int{call}]() mutable { return ++calls == last; };
    try {
      train(options);
      ADD_FAILURE() << "nothing stopped it";
    } catch (const Interrupted& interrupted) {
      EXPECT_EQ(interrupted.what(), "the checkpoint is of step 3, " + left);
    }
  }
}

// The same however often it stops: the rate is a function of the step. Halved every two steps.
TEST_F(Train, FollowsItsScheduleAlsoWhenItGoesOn) {
  const LearningRateOptions halving{
      .rate = 0.5F, .schedule = Schedule::kStep, .step_every = 2, .step_factor = 0.5F};
  train({.steps = 3, .learning_rate = halving});
  train({.steps = 5, .learning_rate = halving}, {.step = 3});
  EXPECT_EQ(rates, (std::vector<float>{0.5F, 0.5F, 0.25F, 0.25F, 0.125F}));
}

// After one step with such a rate the weights are beyond all floats.
TEST_F(Train, SaysThatItHasDiverged) {
  const std::string sentence = refusal(
      [&] { train({.steps = 9, .learning_rate = {.rate = std::numeric_limits<float>::max()}}); });
  EXPECT_EQ(sentence, "the loss of step " + std::to_string(steps.rbegin()->first) +
                          " is not a number: training has diverged; try a smaller --lr");
  EXPECT_LT(steps.rbegin()->first, 9U);
}

TEST_F(Train, LearnsTheImagesItSees) {
  const double before = evaluate(training.session, *data.train).loss;
  train({.epochs = 20, .learning_rate = {.rate = 0.05F}});
  EXPECT_LT(evaluate(training.session, *data.train).loss, before / 2);
}

TEST_F(Train, TellsNoTopFiveOfThreeClasses) {
  EXPECT_FALSE(evaluate(training.session, *data.test).top5.has_value());
}

TEST(Evaluating, TakesTheFirstFiveRanksAsNear) {
  constexpr std::size_t kTwelve = 12;
  nets::Builder net{"twelve classes", kImage};
  test::SmallTraining training{net.build(net.linear("fc", net.input(), {.features = kTwelve})), 4};
  training.session.state().initialise(1);
  const SyntheticDataset data{kImage, kTwelve, 100, 1, Split::kTest};
  std::vector<float> ranks;
  const Evaluation found = evaluate(
      training.session, data,
      {.on_judged = [&](const JudgedImage& image) { ranks.push_back(image.judged.rank); }});
  const auto count = [&](const auto& which) {
    return static_cast<double>(std::ranges::count_if(ranks, which));
  };
  EXPECT_GT(count([](float rank) { return rank == 5; }), 0);  // the sixth
  EXPECT_EQ(found.top5, count([](float rank) { return rank < 5; }) / 100);
}

// The first layer trains nothing and reads the image; the second learns all the same.
TEST(TrainingOfANetwork, MayBeginWithALayerThatTrainsNothing) {
  using nets::NodeId;
  const std::map<std::string, std::function<NodeId(nets::Builder&)>> beginnings{
      {"flatten", [](nets::Builder& net) { return net.flatten("first", net.input()); }},
      {"pool", [](nets::Builder& net) { return net.pool("first", net.input(), {}); }},
      {"relu", [](nets::Builder& net) { return net.relu("first", net.input()); }},
      {"dropout", [](nets::Builder& net) { return net.dropout("first", net.input(), {}); }}};
  const DatasetPair data = small_data();
  for (const auto& [name, begin] : beginnings) {
    nets::Builder builder{name, kImage};
    const NodeId first = begin(builder);
    const NodeId hidden = builder.relu("relu", builder.linear("fc1", first, {.features = 8}));
    test::SmallTraining training{builder.build(builder.linear("fc2", hidden, {.features = 3})), 3};
    training.session.state().initialise(1);
    const double before = evaluate(training.session, *data.train).loss;
    train(training.session, data, {.epochs = 20, .learning_rate = {.rate = 0.05F}}, {});
    EXPECT_LT(evaluate(training.session, *data.train).loss, 0.8 * before) << name;
  }
}

}  // namespace
}  // namespace spillway
