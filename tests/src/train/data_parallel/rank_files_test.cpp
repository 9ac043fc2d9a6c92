// Plans and profiles in files, with which ranks, threads here, train.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "prefetch/files/machine.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/files/profile_file.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "src/program/step.h"
#include "src/train/trainer.h"
#include "tests/src/ranks/on_ranks.h"
#include "tests/src/small_training.h"
#include "tests/src/train/data_parallel/trained_ranks.h"
#include "tests/temporary_folder.h"

namespace spillway::testing {
namespace {

using Use = std::function<void(const Communicator&, const Trainer&)>;

// Returns the errors of two ranks.
std::vector<std::string> on_two(const TrainerOptions& options, const Use& use = {}) {
  ThreadRanks group{2};
  return on_ranks(group, [&](Communicator& communicator) {
    TrainerOptions own = options;
    own.ranks.communicator = communicator;
    const Trainer trainer{test::small_context(), own};
    if (use) use(communicator, trainer);
  });
}

// The first rank sums [0, 2) and [2, 3), the second [3, 4) and [4, 6).
TEST(FilesOfRanks, HoldNoPlanOfOtherPrograms) {
  const test::TemporaryFolder folder;
  TrainerOptions options = testing::options_of(test::small_network());
  options.step.batch = 12;
  options.planning.micro_batches.count = 6;
  options.planning.plan_file = folder.file("plan.json");
  EXPECT_EQ(
      on_two(options, [&](const Communicator&,
                          const Trainer& trainer) { ADD_FAILURE() << trainer.plan().planner; }),
      std::vector<std::string>(
          2,
          "a plan in a file is of one rank's program, and those of these ranks differ; leave out "
          "--plan, or --zero, or give as --micro-batches the number of ranks times a power of "
          "two"));
}

TEST(FilesOfRanks, HoldNoPlanOfOtherBuckets) {
  const test::TemporaryFolder folder;
  TrainerOptions options = testing::options_of(test::small_network());
  const std::string path = folder.file("plan.json");
  EXPECT_EQ(on_two(options,
                   [&](const Communicator& ranks, const Trainer& trainer) {
                     if (ranks.rank() > 0) return;
                     std::ofstream{path} << prefetch::to_json(trainer.plan(), trainer.graph());
                   }),
            std::vector<std::string>(2));
  options.planning.plan_file = path;
  options.ranks.chooses_buckets = true;  // those of the plan are kept
  EXPECT_EQ(on_two(options), std::vector<std::string>(2));
  options.ranks.buckets = {};
  for (const std::string& error : on_two(options)) {
    EXPECT_NE(error.find("the --bucket and --zero of ranks"), std::string::npos) << error;
  }
}

// A profile is of one micro-batch's step by a process alone.
TEST(FilesOfRanks, HoldTheTimesOfEachMicroBatch) {
  const test::TemporaryFolder folder;
  TrainerOptions options = testing::options_of(test::wide_network());
  StepOptions one = options.step;
  one.batch /= kMicroBatches;
  options.planning.update = UpdateRule::kNear;  // a task that is timed
  const prefetch::TaskGraph graph =
      make_training_step(options.network, *test::small_context().backend, one).graph;
  prefetch::Profile profile = prefetch::model_profile(graph, prefetch::find_machine("v100"));
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    profile.durations[t] = {um::Nanoseconds{1000 + static_cast<um::Nanoseconds::rep>(t)}};
  }
  options.planning.times.file = folder.file("profile.json");
  std::ofstream{options.planning.times.file} << prefetch::to_json(profile, graph);
  const auto time_of = [](const Trainer& trainer, const std::string& name) {
    const std::vector<prefetch::Task>& tasks = trainer.graph().tasks;
    const auto found = std::ranges::find(tasks, name, &prefetch::Task::name);
    EXPECT_NE(found, tasks.end()) << name;
    if (found == tasks.end()) return um::Nanoseconds{0};
    return trainer.profile().durations[static_cast<std::size_t>(found - tasks.begin())].front();
  };
  const auto expect_times = [&](const Trainer& trainer) {
    for (const char* const name : {"conv.forward", "fc1.backward_weights"}) {
      EXPECT_EQ(time_of(trainer, name), time_of(trainer, name + std::string{"#2"}));
      EXPECT_GE(time_of(trainer, name), um::Nanoseconds{1000});
    }
    // A sum reads two numbers and writes one for each that the update reads two of and writes one.
    EXPECT_GT(time_of(trainer, "fc1.accumulate#1"), um::Nanoseconds{0});
    EXPECT_LE(time_of(trainer, "fc1.accumulate#1"), time_of(trainer, "fc1.update"));
  };
  EXPECT_EQ(
      on_two(options, [&](const Communicator&, const Trainer& trainer) { expect_times(trainer); }),
      std::vector<std::string>(2));
  expect_times(Trainer{test::small_context(), options});
}

}  // namespace
}  // namespace spillway::testing
