// The plans of a checkpoint that several ranks, threads here, go on from.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nets/builder.h"
#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/plan_file.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/ranks/thread_communicator.h"
#include "src/step/machine_size_model.h"
#include "src/train/parts/rank_plans.h"
#include "src/train/trainer.h"
#include "tests/refusal.h"
#include "tests/src/ranks/on_ranks.h"
#include "tests/src/small_training.h"
#include "tests/src/train/parts/trained_ranks.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using testing::on_ranks;
using testing::options_of;
using Plan = prefetch::Plan;

// Of 3x3, which may be direct or Winograd's.
nets::Network two_convolutions() {
  nets::Builder net{"convolutions", {16, 8, 8}};
  nets::NodeId x = net.input();
  for (const char* const name : {"conv1", "conv2"}) {
    x = net.convolution(name, x,
                        {.channels = 16, .kernel = nets::square(3), .padding = nets::square(1)});
  }
  return net.build(net.linear("fc", x, {.features = 3}));
}

TrainerOptions options_with_a_choice(const test::TemporaryFolder& folder) {
  TrainerOptions options = options_of(two_convolutions());
  options.step.convolution = ConvolutionAlgorithm::kAuto;
  options.checkpoint.folder = folder.file("run");
  options.training.steps = 1;
  return options;
}

// The plans of the first of so many ranks, after its training.
std::vector<Plan> plans_on(std::size_t ranks, const TrainerOptions& options,
                           std::vector<std::string>* warnings = nullptr) {
  ThreadRanks group{ranks};
  std::vector<Plan> plans;
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    TrainerOptions own = options;
    own.ranks.communicator = &communicator;
    const bool is_first = communicator.rank() == 0;
    Trainer trainer{test::small_context(), own, {.on_warning = [&](const std::string& sentence) {
                      if (is_first && warnings != nullptr) warnings->push_back(sentence);
                    }}};
    trainer.run();
    if (is_first) plans = trainer.plans().training;
  });
  EXPECT_EQ(errors, testing::no_errors(group));
  return plans;
}

TEST(KeptPlans, AreUsedAgainByAsManyRanks) {
  const test::TemporaryFolder folder;
  TrainerOptions options = options_with_a_choice(folder);
  options.memory.budget = "100%";
  const std::vector<Plan> first = plans_on(2, options);
  ASSERT_FALSE(first.empty());
  options.checkpoint.resume = true;
  // Another planner's plan is another.
  options.planning.planner = "vdnn-all";
  options.training.steps = 2;
  std::vector<std::string> warnings;
  EXPECT_EQ(plans_on(2, options, &warnings), first);
  EXPECT_TRUE(warnings.empty());
}

TEST(KeptPlans, AreMadeAnewForOthersAndInASmallerBudget) {
  const test::TemporaryFolder folder;
  TrainerOptions options = options_with_a_choice(folder);
  options.memory.budget = "100%";
  const std::vector<Plan> first = plans_on(4, options);
  ASSERT_EQ(first.size(), 1U);
  options.checkpoint.resume = true;
  options.training.steps = 2;
  EXPECT_GT(plans_on(1, options).size(), 1U);
  options.training.steps = 3;
  options.memory.budget = "min";
  const std::vector<Plan> small = plans_on(4, options);
  ASSERT_EQ(small.size(), 1U);
  EXPECT_LT(small.front().budget, first.front().budget);
}

/// Plans of a small training in which convolutions are what no time would choose.
class KeptAlgorithms : public ::testing::Test {
 protected:
  KeptAlgorithms() {
    for (prefetch::TaskRun& run : plan.runs) {
      const auto& algorithms = workload.training().graph[run.task].algorithms;
      if (algorithms.size() > 1) {
        run.algorithm = static_cast<std::uint32_t>(algorithms.size() - 1);
        ++choices;
      }
    }
  }

  KeptPlans kept() {
    const std::string file = folder.file("plan.json");
    prefetch::write_json(prefetch::to_json(plan, workload.training().graph), file);
    return {RankOptions{.communicator = end.get()}, {file}};
  }

  test::TemporaryFolder folder;
  ThreadRanks alone{1};
  std::unique_ptr<Communicator> end = alone.end(0);
  Workload workload{two_convolutions(), MachineSizeModel{}, {.batch = 8}};
  Plan plan =
      make_plans(workload,
                 prefetch::model_profile(workload.training().graph, prefetch::find_machine("host")),
                 2 * workload.need().peak_with_workspace, {.memory = MemoryMode::kResident})
          .training.front();
  std::size_t choices = 0;
};

TEST_F(KeptAlgorithms, AreMuchFasterThanOthers) {
  ASSERT_GT(choices, 0U);
  const auto& graph = workload.training().graph;
  const prefetch::Profile times = prefetch::model_profile(graph, prefetch::find_machine("host"));
  const prefetch::Profile favoured = kept().favour(workload, {times}).front();
  for (const prefetch::TaskRun& run : plan.runs) {
    const auto& of_task = favoured.durations[static_cast<std::size_t>(run.task)];
    EXPECT_EQ(of_task[run.algorithm], times(run));
    for (std::size_t a = 0; a < of_task.size(); ++a) {
      if (a == run.algorithm) continue;
      EXPECT_GE(of_task[a], 1000 * times(run));
    }
  }
}

TEST_F(KeptAlgorithms, AreThoseOfTheNewPlan) {
  const std::vector<Plan> same{plan};
  EXPECT_EQ(
      kept().departure(workload, same),
      "the checkpoint's plan is not for these ranks and this budget: there is a new one, with "
      "the same algorithms");
  std::vector<Plan> other{plan};
  for (prefetch::TaskRun& run : other.front().runs) run.algorithm = 0;
  const std::string sentence = kept().departure(workload, other);
  EXPECT_NE(sentence.find("run by other algorithms"), std::string::npos) << sentence;
}

TEST(KeptPlans, ThatCannotBeReadEndAllRanks) {
  const test::TemporaryFolder folder;
  ThreadRanks group{2};
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    const RankOptions options{.communicator = &communicator};
    KeptPlans{options, {folder.file("none.json")}};
  });
  EXPECT_NE(errors[0].find("none.json"), std::string::npos) << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
}

}  // namespace
}  // namespace spillway
