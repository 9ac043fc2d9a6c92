#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "prefetch/planners/catalogue.h"
#include "prefetch/state_home.h"
#include "src/io/data/batch_loader.h"
#include "src/io/data/open_dataset.h"
#include "src/plan/plan_question.h"
#include "src/train/trainer.h"
#include "tests/refusal.h"
#include "tests/src/printed_memory_mode.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

TrainerOptions heavy_options(MemoryMode mode, StateRule state, const std::string& budget,
                             std::uint64_t steps = 4) {
  return {.network = test::heavy_network(),
          .step = {.batch = 3,
                   .convolution = ConvolutionAlgorithm::kDirect,
                   .optimizer = AdamOptions{.weight_decay = 0.01F}},
          .memory = {.budget = budget, .mode = mode},
          .planning = {.state = state},
          .training = {.steps = steps}};
}

std::string resident_weights(std::uint64_t steps = 4) {
  Trainer trainer{test::small_context(),
                  heavy_options(MemoryMode::kResident, StateRule::kAuto, "auto", steps)};
  return trainer.run().weights_sha256;
}

um::Bytes far_between_steps(const Trainer& trainer) {
  const prefetch::Plan& plan = trainer.plan();
  return prefetch::StateHome{trainer.graph(), prefetch::BlockSizes{trainer.graph(), plan.page},
                             plan}
      .far();
}

using Case = std::tuple<MemoryMode, std::string, std::string, bool>;

class FarState : public testing::TestWithParam<Case> {};

TEST_P(FarState, ChangesNoBit) {
  const auto& [mode, planner, budget, is_in_file] = GetParam();
  const test::TemporaryFolder folder;
  TrainerOptions options = heavy_options(mode, StateRule::kFar, budget);
  options.planning.planner = planner;
  if (is_in_file) options.memory.space.far.file = folder.path();
  Trainer trainer{test::small_context(), options};
  EXPECT_GT(far_between_steps(trainer), um::Bytes{});
  const TrainingSummary summary = trainer.run();
  EXPECT_EQ(summary.weights_sha256, resident_weights());
  EXPECT_LE(summary.near_peak, summary.budget);
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  const auto& [mode, planner, budget, is_in_file] = info.param;
  std::string name =
      std::string{to_string(mode)} + "_" + planner + "_" + budget + (is_in_file ? "_file" : "_ram");
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Modes, FarState,
                         testing::Combine(testing::Values(MemoryMode::kManaged, MemoryMode::kCopy),
                                          testing::Values("joint", "fractional", "capacity"),
                                          testing::Values("min", "min+20%"), testing::Bool()),
                         case_name);

TEST(FarStateOfARun, IsThereForEvaluationAndForCheckpoints) {
  for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    const test::TemporaryFolder folder;
    TrainerOptions options = heavy_options(mode, StateRule::kFar, "min");
    options.checkpoint.folder = folder.file("checkpoint");
    options.training.checkpoint_every = 1;
    options.training.steps = 2;
    Trainer{test::small_context(), options}.run();
    options.checkpoint.resume = true;
    options.training.steps = 4;
    EXPECT_EQ(Trainer(test::small_context(), options).run().weights_sha256, resident_weights());
  }
}

// The state goes from the training step to the evaluation's, which knows a part of it, and back.
TEST(FarStateOfARun, GoesFromStepToStep) {
  const DatasetPair data = open_dataset(
      "synthetic", {.image = {1, 8, 8}, .classes = 3, .batch = 3, .seed = 5, .labels = {1, 1}});
  const auto losses = [&](MemoryMode mode) {
    ExecutionContext context = test::small_context();
    const Workload near{test::heavy_network(), *context.backend, {.batch = 3}};
    const PlanRequest request{
        .memory = mode,
        .planner = &prefetch::find_planner("joint"),
        .state = mode == MemoryMode::kResident ? StateRule::kAuto : StateRule::kFar};
    const StateChoice choice{near, *context.backend, request};
    const um::Bytes budget = mode == MemoryMode::kResident ? 2 * near.need().peak_with_workspace
                                                           : choice.need().smallest;
    const Workload& workload = choice.within(budget);
    const PlanAnswer planned =
        answer({.steps = workload,
                .choice = &choice,
                .profile = prefetch::model_profile(workload.training().graph,
                                                   prefetch::find_machine("host")),
                .budget = budget,
                .request = request});
    Session session{context, *planned.workload, planned.plans, mode, {}};
    session.state().initialise(1);
    BatchLoader loader{*data.train, 3, 5, 0, {.prefetch_depth = 6}};
    std::vector<float> all;
    for (std::uint64_t step = 0; step < 3; ++step) {
      const Batch& batch = loader.next();
      const StepContext of_step{.seed = 1, .step = step, .learning_rate = 0.05F, .batch = &batch};
      all.push_back(session.train(of_step).loss);
      all.push_back(session.evaluate(of_step).loss);
    }
    EXPECT_EQ(session.state().sha256().size(), 64U);
    return std::pair{all, session.state().sha256()};
  };
  const auto resident = losses(MemoryMode::kResident);
  EXPECT_EQ(losses(MemoryMode::kManaged), resident);
  EXPECT_EQ(losses(MemoryMode::kCopy), resident);
}

TEST(FarStateOfARun, GoesWithMicroBatches) {
  const auto weights = [](MemoryMode mode, StateRule state, const char* budget) {
    TrainerOptions options = heavy_options(mode, state, budget);
    options.planning.micro_batches.size = 1;
    Trainer trainer{test::small_context(), options};
    EXPECT_EQ(far_between_steps(trainer) > um::Bytes{}, state == StateRule::kFar);
    return trainer.run().weights_sha256;
  };
  const std::string resident = weights(MemoryMode::kResident, StateRule::kAuto, "auto");
  for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    EXPECT_EQ(weights(mode, StateRule::kFar, "80%"), resident) << to_string(mode);
  }
}

TEST(FarStateOfARun, IsChosenWhereTheBudgetIsTooSmallForTheRest) {
  TrainerOptions options = heavy_options(MemoryMode::kManaged, StateRule::kAuto, "min");
  Trainer trainer{test::small_context(), options};
  EXPECT_GT(far_between_steps(trainer), um::Bytes{});
  EXPECT_EQ(trainer.run().weights_sha256, resident_weights());
}

}  // namespace
}  // namespace spillway
