// The plans of a checkpoint that a training goes on from, also on several ranks, threads here.
#include "src/train/checkpoint/kept_plans.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nets/builder.h"
#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/plan_file.h"
#include "src/plan/plan_question.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/program/machine_size_model.h"
#include "src/ranks/thread_communicator.h"
#include "src/train/trainer.h"
#include "tests/refusal.h"
#include "tests/src/ranks/on_ranks.h"
#include "tests/src/small_training.h"
#include "tests/src/train/data_parallel/trained_ranks.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using testing::on_ranks;
using testing::options_of;
using Plan = prefetch::Plan;

// Two 3x3 convolutions, which may be direct or Winograd's.
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

// Events of the first rank before its training.
struct Told {
  std::vector<std::string> warnings;
  bool is_planned_anew = false;
};

// The plan of the first of so many ranks, after its training.
std::optional<Plan> plan_on(std::size_t ranks, const TrainerOptions& options,
                            Told* told = nullptr) {
  ThreadRanks group{ranks};
  std::optional<Plan> plan;
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    TrainerOptions own = options;
    own.ranks.communicator = communicator;
    const bool is_first = communicator.rank() == 0;
    Trainer trainer{test::small_context(),
                    own,
                    {.on_planning =
                         [&](auto) {
                           if (is_first && told != nullptr) told->is_planned_anew = true;
                         },
                     .on_warning =
                         [&](const std::string& sentence) {
                           if (is_first && told != nullptr) told->warnings.push_back(sentence);
                         }}};
    trainer.run();
    if (is_first) plan = trainer.plans().training;
  });
  EXPECT_EQ(errors, testing::no_errors(group));
  return plan;
}

TEST(KeptPlans, AreUsedAgainByAsManyRanks) {
  const test::TemporaryFolder folder;
  TrainerOptions options = options_with_a_choice(folder);
  options.memory.budget = "100%";
  const std::optional<Plan> first = plan_on(2, options);
  ASSERT_TRUE(first);
  options.checkpoint.resume = true;
  options.training.steps = 2;
  Told told;
  EXPECT_EQ(plan_on(2, options, &told), first);
  EXPECT_TRUE(told.warnings.empty());
  EXPECT_FALSE(told.is_planned_anew);
  options.planning.planner = "vdnn-all";
  options.training.steps = 3;
  EXPECT_NE(plan_on(2, options, &told), first);
  ASSERT_EQ(told.warnings.size(), 1U);
  EXPECT_EQ(told.warnings.front(),
            "the checkpoint's plan was made for planner joint, not vdnn-all; there is a new one, "
            "with the same algorithms, so that results stay the same bit for bit");
}

// One process alone: whatever is asked for otherwise, the algorithms stay where memory lets them.
TEST(KeptPlans, OfOneProcessKeepTheBitsOfATrainingThatIsPlannedOtherwise) {
  const test::TemporaryFolder folder;
  TrainerOptions options = options_with_a_choice(folder);
  options.memory.budget = "100%";
  options.training.steps = 4;
  options.checkpoint.folder.clear();
  options.ranks = {};
  const auto run = [](const TrainerOptions& own, Told& told) {
    Trainer trainer{test::small_context(), own, {.on_warning = [&](const std::string& sentence) {
                      told.warnings.push_back(sentence);
                    }}};
    return trainer.run();
  };
  Told told;
  options.memory.mode = MemoryMode::kManaged;
  const std::string whole = run(options, told).weights_sha256;
  struct Other {
    std::string budget;
    std::optional<MemoryMode> mode;
    std::string planner;
    bool may_recompute;
    std::string words;  // empty: it goes on with the checkpoint's plan
  };
  for (const auto& [budget, mode, planner, may_recompute, words] :
       {Other{"100%", {}, "joint", true, ""}, Other{"min+70%", {}, "joint", true, "a budget of "},
        Other{"100%", {}, "vdnn-all", true, "planner joint, not vdnn-all"},
        Other{"100%", {}, "joint", false, "--recompute auto, not off"},
        Other{"100%", MemoryMode::kCopy, "joint", true, "--memory managed, not copy"},
        Other{"auto", MemoryMode::kResident, "joint", true, "--memory managed, not resident"}}) {
    std::filesystem::remove_all(folder.file("run"));
    TrainerOptions part = options;
    part.checkpoint.folder = folder.file("run");
    part.training.steps = 2;
    run(part, told);
    part.checkpoint.resume = true;
    part.training.steps = 4;
    part.memory.budget = budget;
    if (mode) part.memory.mode = mode;
    part.planning.planner = planner;
    part.planning.may_recompute = may_recompute;
    told = {};
    EXPECT_EQ(run(part, told).weights_sha256, whole) << words;
    ASSERT_EQ(told.warnings.size(), words.empty() ? 0U : 1U) << words;
    if (words.empty()) continue;
    EXPECT_NE(told.warnings[0].find("was made for " + words), std::string::npos)
        << told.warnings[0];
    EXPECT_TRUE(told.warnings[0].ends_with("stay the same bit for bit")) << told.warnings[0];
  }
}

TEST(KeptPlans, AreMadeAnewForOthersAndInASmallerBudget) {
  const test::TemporaryFolder folder;
  TrainerOptions options = options_with_a_choice(folder);
  options.memory.budget = "100%";
  const std::optional<Plan> first = plan_on(4, options);
  ASSERT_TRUE(first);
  options.checkpoint.resume = true;
  options.training.steps = 2;
  const std::optional<Plan> alone = plan_on(1, options);  // of all four
  ASSERT_TRUE(alone);
  EXPECT_GT(alone->runs.size(), 3 * first->runs.size());
  options.training.steps = 3;
  options.memory.budget = "min";
  const std::optional<Plan> small = plan_on(4, options);
  ASSERT_TRUE(small);
  EXPECT_LT(small->budget, first->budget);
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
    return {self_communicator(), {file}};
  }

  test::TemporaryFolder folder;
  Workload workload{two_convolutions(), MachineSizeModel{}, {.batch = 8}};
  Plan plan = answer({.steps = workload,
                      .profile = prefetch::model_profile(workload.training().graph,
                                                         prefetch::find_machine("host")),
                      .budget = 2 * workload.need().peak_with_workspace,
                      .request = {.memory = MemoryMode::kResident}})
                  .plans.training;
  std::size_t choices = 0;
};

TEST_F(KeptAlgorithms, AreMuchFasterThanOthers) {
  ASSERT_GT(choices, 0U);
  const auto& graph = workload.training().graph;
  const prefetch::Profile times = prefetch::model_profile(graph, prefetch::find_machine("host"));
  const prefetch::Profile favoured = kept().favour(workload, times);
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
  EXPECT_EQ(kept().departure({}, workload, plan),
            "the checkpoint's plan does not fit the steps and the budget of this training; there "
            "is a new one, with the same algorithms, so that results stay the same bit for bit");
  EXPECT_EQ(kept().departure({.text = "1 thread, not 2", .rounds_otherwise = true}, workload, plan),
            "the checkpoint's plan was made for 1 thread, not 2; there is a new one, with the same "
            "algorithms, but kernels that divide their work otherwise may round otherwise");
  Plan other = plan;
  for (prefetch::TaskRun& run : other.runs) run.algorithm = 0;
  const std::string sentence = kept().departure({}, workload, other);
  EXPECT_NE(sentence.find("run by other algorithms"), std::string::npos) << sentence;
}

// Earlier versions kept a plan for each kind of part of a batch.
TEST_F(KeptAlgorithms, OfPartsOfABatchAreThoseOfAllMicroBatches) {
  const Workload cut{
      two_convolutions(), MachineSizeModel{}, {.batch = 24}, all_of(24, {.size = 8, .count = 3})};
  static_cast<void>(kept());
  const std::string file = folder.file("plan.json");
  const KeptPlans parts{self_communicator(), {file, file}};
  EXPECT_FALSE(parts.are_of(StateChoice{cut, MachineSizeModel{}, {.state = StateRule::kNear}}));
  const prefetch::TaskGraph& graph = cut.training().graph;
  const prefetch::Profile times = prefetch::model_profile(graph, prefetch::find_machine("host"));
  EXPECT_FALSE(
      parts.use(cut, times, 2 * cut.need().peak_with_workspace, {.memory = MemoryMode::kResident}));
  const Plan anew = answer({.steps = cut,
                            .profile = parts.favour(cut, times),
                            .budget = 2 * cut.need().peak_with_workspace,
                            .request = {.memory = MemoryMode::kResident}})
                        .plans.training;
  for (const prefetch::TaskRun& run : anew.runs) {
    const auto& algorithms = graph[run.task].algorithms;
    if (algorithms.size() > 1) {
      EXPECT_EQ(run.algorithm, algorithms.size() - 1);
    }
  }
  EXPECT_EQ(parts.departure({}, cut, anew),
            "the checkpoint's plan does not fit the steps and the budget of this training; there "
            "is a new one, of all micro-batches together, whose gradients are added up in another "
            "order, so that results may be rounded otherwise");
}

TEST(KeptPlans, ThatCannotBeReadEndAllRanks) {
  const test::TemporaryFolder folder;
  ThreadRanks group{2};
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    KeptPlans{communicator, {folder.file("none.json")}};
  });
  EXPECT_NE(errors[0].find("none.json"), std::string::npos) << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
}

}  // namespace
}  // namespace spillway
