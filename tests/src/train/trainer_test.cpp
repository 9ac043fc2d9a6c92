#include "src/train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/profile_file.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "tests/refusal.h"
#include "tests/src/clocked_backend.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"
#include "tests/um/hosted_device.h"

namespace spillway {
namespace {

TrainerOptions small_options(std::uint64_t steps) {
  return {.network = test::small_network(),
          .step = {.batch = 3, .convolution = ConvolutionAlgorithm::kDirect},
          .memory = {.budget = "min+50%"},
          .training = {.steps = steps}};
}

TEST(Trainer, ReportsWhatItDoes) {
  std::vector<double> measured;
  std::vector<std::size_t> planned;
  std::vector<std::uint64_t> steps;
  TrainerOptions options = small_options(3);
  options.planning.state = StateRule::kNear;  // movable state adds tasks
  Trainer trainer{test::small_context(),
                  options,
                  {.on_measuring = [&](double fraction) { measured.push_back(fraction); },
                   .on_planning = [&](std::size_t tasks) { planned.push_back(tasks); },
                   .on_step = [&](auto step, auto, const auto&) { steps.push_back(step); }}};
  EXPECT_FALSE(measured.empty());
  EXPECT_EQ(planned, std::vector{trainer.graph().tasks.size()});
  EXPECT_TRUE(steps.empty()) << "before it runs";

  const TrainingSummary summary = trainer.run();

  EXPECT_EQ(steps, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(summary.steps, 3U);
  EXPECT_GT(summary.near_peak, um::Bytes{});
  EXPECT_LE(summary.near_peak, summary.budget);
  EXPECT_EQ(summary.weights_sha256.size(), 64U);
}

TEST(Trainer, NeedsNobodyWhoListens) {
  Trainer trainer{test::small_context(), small_options(2)};
  EXPECT_EQ(trainer.run().steps_run, 2U);
}

TEST(Trainer, EndsTheStepInWhichItWasAsked) {
  std::stop_source stop;
  std::uint64_t last = 0;
  Trainer trainer{test::small_context(),
                  small_options(9),
                  {.on_step =
                       [&](auto step, auto, const auto&) {
                         last = step;
                         if (step == 2) stop.request_stop();
                       }},
                  stop.get_token()};
  try {
    trainer.run();
    FAIL() << "nothing stopped it";
  } catch (const Interrupted& interrupted) {
    EXPECT_STREQ(interrupted.what(),
                 "step 2 was the last; with --checkpoint it would have been saved");
  }
  EXPECT_EQ(last, 2U);
}

// One whose kernels are counted by `backend`, which the context has.
ExecutionContext counted_context(test::ClockedBackend*& backend) {
  ExecutionContext context;
  context.device = std::make_unique<um::HostDevice>();
  context.compute = context.device->make_stream("compute");
  auto own = std::make_unique<test::ClockedBackend>();
  backend = own.get();
  context.compute->enqueue(
      [&] { own->host().start_threads([&] { context.device->prepare_kernel_thread(); }); });
  context.compute->synchronize();
  context.backend = std::move(own);
  return context;
}

TEST(Trainer, MeasuresNothingWhereNothingIsDecided) {
  TrainerOptions options = small_options(1);
  options.memory = {.mode = MemoryMode::kResident};
  test::ClockedBackend* backend = nullptr;
  Trainer trainer{counted_context(backend), options, {.on_measuring = [](double) {
                    ADD_FAILURE() << "it measures";
                  }}};
  const TrainingSummary summary = trainer.run();
  EXPECT_EQ(backend->all_runs(), trainer.graph().tasks.size());
  EXPECT_EQ(backend->runs<ConvolutionForward>("direct"), 1U);
  EXPECT_FALSE(summary.predicted_step);
  EXPECT_EQ(trainer.profile().source, "not measured");
}

// A convolution that Winograd's algorithm may compute; but no link is measured beside it.
TEST(Trainer, MeasuresTasksWhereAnAlgorithmIsChosen) {
  TrainerOptions options{.network = test::network_with_a_choice(),
                         .step = {.batch = 2},
                         .memory = {.mode = MemoryMode::kResident},
                         .training = {.steps = 1}};
  test::ClockedBackend* backend = nullptr;
  Trainer trainer{counted_context(backend), options};
  const auto& tasks = trainer.graph().tasks;
  if (std::ranges::all_of(tasks, [](const auto& task) { return task.algorithms.size() == 1; })) {
    GTEST_SKIP() << "oneDNN has no Winograd here";
  }
  EXPECT_GT(backend->runs<ConvolutionForward>("direct"), 1U);
  EXPECT_TRUE(trainer.run().predicted_step);
  EXPECT_EQ(trainer.profile().link.offload.bytes_per_second(),
            prefetch::LinkProfile{}.offload.bytes_per_second());
}

TEST(Trainer, StopsWhileItMeasures) {
  std::stop_source stop;
  const TrainerEvents events{.on_measuring = [&](double) { stop.request_stop(); }};
  EXPECT_THROW((Trainer{test::small_context(), small_options(9), events, stop.get_token()}),
               Interrupted);
}

TEST(Trainer, RefusesABudgetInOneSentence) {
  TrainerOptions options = small_options(1);
  for (const auto& [budget, cause] : {std::pair{"1KiB", "smallest"}, {"much", "'much'"}}) {
    options.memory.budget = budget;
    const std::string sentence = test::refusal([&] { Trainer{test::small_context(), options}; });
    EXPECT_NE(sentence.find(cause), std::string::npos) << sentence;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  }
}

// Returns a context of a device with such memory.
ExecutionContext context_with(const um::MemoryFacts& facts) {
  ExecutionContext context = test::small_context();
  auto device = std::make_unique<test::WatchedDevice>();
  device->facts = facts;
  context.device = std::move(device);
  return context;
}

TEST(Trainer, UsesTheMemoryModeThatSuitsTheDevice) {
  TrainerOptions options = small_options(1);
  options.memory.budget = "100%";
  EXPECT_EQ((Trainer{test::small_context(), options}.memory()), MemoryMode::kManaged);
  EXPECT_EQ((Trainer{context_with({.moves_by_hints = false}), options}.memory()),
            MemoryMode::kCopy);
  EXPECT_EQ(
      (Trainer{context_with({.moves_by_hints = false, .is_host_ram = true}), options}.memory()),
      MemoryMode::kResident);
}

// Returns a context of a host with this much memory.
ExecutionContext context_with_room(um::Bytes available) {
  ExecutionContext context = test::small_context();
  auto device = std::make_unique<test::WatchedDevice>();
  device->available = available;
  context.device = std::move(device);
  return context;
}

TEST(Trainer, PutsFarMemoryInAFileWhereRamHasNoRoomForIt) {
  const test::TemporaryFolder folder;
  TrainerOptions options = small_options(2);
  options.network = test::heavy_network();
  options.memory.budget = "min";
  const Trainer all{test::small_context(), options};
  const um::Bytes near = all.plans().budget;
  const um::Bytes far = all.session().far_memory();
  EXPECT_GT(far, um::Bytes{});
  const auto file_of = [&](um::Bytes available) {
    return Trainer{context_with_room(available), options}.space().far.file;
  };
  EXPECT_EQ(file_of(near), "") << "of those who do not want it";
  um::Bytes asked;
  options.memory.find_far_folder = [&](um::Bytes size) {
    asked = size;
    return folder.path().string();
  };
  EXPECT_EQ(file_of(near + 2 * far), "") << "there is room";
  EXPECT_EQ(file_of(near), folder.path());
  EXPECT_GT(asked, um::Bytes{});
  Trainer spilled{context_with_room(near), options};
  EXPECT_TRUE(spilled.has_spilled());
  EXPECT_NE(spilled.session().memory_description().find("far file in"), std::string::npos);
  EXPECT_EQ(spilled.run().weights_sha256,
            (Trainer{test::small_context(), options}.run().weights_sha256));
}

TEST(Trainer, MeasuresOnceWhatIsKept) {
  const test::TemporaryFolder folder;
  TrainerOptions options = small_options(2);
  options.planning.times.cache = folder.path();
  int measured = 0;
  const auto train = [&](const TrainerOptions& asked) {
    measured = 0;
    auto trainer = std::make_unique<Trainer>(
        test::small_context(), asked, TrainerEvents{.on_measuring = [&](double) { ++measured; }});
    return trainer;
  };
  const auto first = train(options);
  EXPECT_GT(measured, 0);
  EXPECT_EQ(first->kept_since(), std::nullopt);
  const auto second = train(options);
  EXPECT_EQ(measured, 0);
  EXPECT_NE(second->kept_since(), std::nullopt);
  EXPECT_EQ(second->profile().durations, first->profile().durations);
  EXPECT_EQ(second->run().weights_sha256, first->run().weights_sha256);
  TrainerOptions slow = options;
  slow.memory.space.link.bandwidth = um::Bandwidth{1e9};
  slow.planning.times.adds_to_cache = false;
  for (int i = 0; i < 2; ++i) {
    static_cast<void>(train(slow));
    EXPECT_GT(measured, 0) << "it is not kept";
  }
  EXPECT_TRUE(second->forget_profiles());
  EXPECT_EQ(train(options)->kept_since(), std::nullopt);
  EXPECT_GT(measured, 0);
}

// The times of updates on the far side follow from the link's.
TEST(Trainer, PlansFarUpdatesByKeptTimes) {
  const test::TemporaryFolder folder;
  TrainerOptions options = small_options(2);
  options.planning.times.cache = folder.path();
  options.planning.update = UpdateRule::kFar;
  options.memory.budget = "min+30%";
  Trainer first{test::small_context(), options, {}};
  Trainer second{test::small_context(), options, {}};
  EXPECT_NE(second.kept_since(), std::nullopt);
  EXPECT_FALSE(second.profile().far_updates.empty());
  EXPECT_EQ(second.profile().far_updates, first.profile().far_updates);
}

// The model's link copies what tasks read, as the copy mode does.
TEST(Trainer, CopiesNothingThatIsReadWithUnifiedMemory) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() / "profile.json";
  TrainerOptions options = small_options(1);
  options.planning.state = StateRule::kNear;  // the profile is of this graph
  const prefetch::TaskGraph graph = Trainer{test::small_context(), options}.graph();
  const prefetch::Profile profile = prefetch::model_profile(graph, prefetch::find_machine("v100"));
  prefetch::write_json(prefetch::to_json(profile, graph), path);
  options.planning.times.file = path;
  EXPECT_FALSE((Trainer{test::small_context(), options}.profile().link.copies_while_read));
  options.memory.mode = MemoryMode::kCopy;
  EXPECT_TRUE((Trainer{test::small_context(), options}.profile().link.copies_while_read));
}

TEST(Trainer, GoesOnToTheSameWeights) {
  const test::TemporaryFolder folder;
  const std::string whole = Trainer{test::small_context(), small_options(4)}.run().weights_sha256;
  TrainerOptions options = small_options(2);
  options.checkpoint.folder = folder.file("checkpoint");
  Trainer{test::small_context(), options}.run();

  options.checkpoint.resume = true;
  options.training.steps = 4;
  const TrainingSummary resumed = Trainer{test::small_context(), options}.run();

  EXPECT_EQ(resumed.steps, 4U);
  EXPECT_EQ(resumed.steps_run, 2U);
  EXPECT_EQ(resumed.weights_sha256, whole);
}

// A training in a folder: what it is told, and what is left of it.
class TrainerInFolder : public testing::Test {
 protected:
  [[nodiscard]] TrainerOptions options(std::uint64_t steps, std::size_t keep = 2) const {
    TrainerOptions options = small_options(steps);
    options.training.checkpoint_every = 1;
    options.training.evaluate_every = 2;
    options.checkpoint.folder = folder_.file("checkpoint");
    options.checkpoint.keep = keep;
    return options;
  }
  [[nodiscard]] TrainerOptions resumed(std::uint64_t steps, std::size_t keep = 2) const {
    TrainerOptions more = options(steps, keep);
    more.checkpoint.resume = true;
    return more;
  }
  static TrainingSummary run(const TrainerOptions& options, const TrainerEvents& events = {}) {
    return Trainer{test::small_context(), options, events}.run();
  }
  // What is known of a training that has ended.
  [[nodiscard]] static EndedTraining ended(const TrainerOptions& options) {
    try {
      const Trainer trainer{test::small_context(), options};
    } catch (const NothingLeft& nothing) {
      return nothing.training();
    }
    ADD_FAILURE() << "something is left to train";
    return {};
  }
  [[nodiscard]] std::string file(const std::string& name) const {
    return folder_.file("checkpoint/" + name);
  }
  // The steps that there are checkpoints of.
  [[nodiscard]] std::vector<std::uint64_t> steps() const {
    std::vector<std::uint64_t> steps;
    for (const std::filesystem::path& path : find_manifests(folder_.path() / "checkpoint")) {
      if (const auto step = step_of_manifest(path.filename().string())) steps.push_back(*step);
    }
    return steps;
  }
  [[nodiscard]] static std::vector<std::string> warnings_of(const TrainerOptions& options) {
    std::vector<std::string> warnings;
    const TrainerEvents events{.on_warning = [&](const auto& told) { warnings.push_back(told); }};
    const Trainer trainer{test::small_context(), options, events};
    return warnings;
  }

 private:
  test::TemporaryFolder folder_;
};

using Steps = std::vector<std::uint64_t>;

TEST_F(TrainerInFolder, ThatHasEndedLeavesWhatItIsToKeep) {
  run(options(4, 3));
  ASSERT_EQ(steps(), (Steps{4, 3, 2}));
  EXPECT_EQ(ended(resumed(4, 1)).steps, 4U);
  EXPECT_EQ(steps(), Steps{4});
  EXPECT_FALSE(std::filesystem::exists(file("step-3.safetensors")));
  EXPECT_EQ(ended(resumed(4, 1)).weights_sha256.size(), 64U) << "and can be looked at again";
}

TEST_F(TrainerInFolder, ThatHasEndedKeepsItsBest) {
  TrainerOptions best = options(5, 1);
  best.checkpoint.keep_best = true;
  run(best);
  const Steps kept = steps();
  const std::uint64_t step = read_manifest(file("checkpoint.json")).checkpoint.best->step;
  ASSERT_EQ(kept.size(), 2U);
  ASSERT_EQ(std::ranges::count(kept, step), 1);
  best.checkpoint.resume = true;
  EXPECT_EQ(ended(best).steps, 5U);
  EXPECT_EQ(steps(), kept);
}

// Of the best evaluation, too, where nobody asked for it.
TEST_F(TrainerInFolder, ThatGoesOnKeepsNoMoreThanItIsTo) {
  run(options(4));
  run(resumed(7));
  EXPECT_EQ(steps(), (Steps{7, 6}));
}

// As it is where a program is killed right before it writes checkpoint.json.
TEST_F(TrainerInFolder, ThatHasEndedWritesWhatItsLastSaveLacks) {
  run(options(3, 3));
  for (const std::string older : {"step-2.json", "step-1.json", ""}) {
    std::filesystem::remove(file("checkpoint.json"));
    if (!older.empty()) std::filesystem::copy_file(file(older), file("checkpoint.json"));
    EXPECT_EQ(ended(resumed(3, 3)).steps, 3U);
    EXPECT_EQ(read_manifest(file("checkpoint.json")).checkpoint.step, 3U) << older;
  }
  std::filesystem::remove(file("step-3.json"));
  EXPECT_EQ(ended(resumed(3, 2)).steps, 3U);
  EXPECT_EQ(steps(), (Steps{3, 2}));
  for (const CheckpointFinding& finding : verify_checkpoints(file(""))) {
    EXPECT_EQ(finding.problem, std::nullopt);
  }
}

// What a test of older weights gave is not told beside newer ones.
TEST_F(TrainerInFolder, KeepsTheEvaluationOfItsLastStep) {
  const TrainingSummary summary = run(options(3));
  ASSERT_TRUE(summary.evaluation.has_value());
  const EndedTraining training = ended(resumed(3));
  ASSERT_TRUE(training.evaluation.has_value());
  EXPECT_EQ(training.evaluation->step, 3U);
  const Evaluation kept = evaluation_of(*training.evaluation);
  EXPECT_EQ(kept.loss, summary.evaluation->loss);
  EXPECT_EQ(kept.accuracy, summary.evaluation->accuracy);
  EXPECT_EQ(kept.top5, summary.evaluation->top5);

  TrainerOptions more = resumed(4);
  more.training.evaluate_every = 0;
  EXPECT_FALSE(run(more).evaluation.has_value());
  EXPECT_FALSE(ended(more).evaluation.has_value());
}

// Whoever listens may write to a disk that is full.
TEST_F(TrainerInFolder, SavesItsStepWhereAnEventFails) {
  const std::string whole = run(small_options(6)).weights_sha256;
  TrainerOptions saved = options(6);
  saved.training.checkpoint_every = 100;
  const std::string sentence = test::refusal([&] {
    run(saved, {.on_step = [](auto step, auto, const auto&) {
          if (step == 3) throw um::Error{"cannot write out.json: No space left on device"};
        }});
  });
  EXPECT_EQ(sentence,
            "cannot write out.json: No space left on device; the checkpoint is of step 3, and "
            "--resume goes on from there");
  EXPECT_EQ(steps(), Steps{3});
  saved.checkpoint.resume = true;
  EXPECT_EQ(run(saved).weights_sha256, whole);
}

TEST_F(TrainerInFolder, SavesItsStepWhereAnEvaluationCannotBeTold) {
  TrainerOptions saved = options(6);
  saved.training.checkpoint_every = 100;
  const TrainerEvents events{
      .on_evaluation = [](auto, auto, const auto&) { throw um::Error{"cannot write"}; }};
  EXPECT_EQ(test::refusal([&] { run(saved, events); }),
            "cannot write; the checkpoint is of step 2, and --resume goes on from there");
  saved.checkpoint.resume = true;
  EXPECT_EQ(test::refusal([&] { run(saved, events); }),
            "cannot write; the checkpoint is of step 4, and --resume goes on from there");
  EXPECT_EQ(test::refusal([&] { run(saved, events); }),
            "cannot write; the training has come to its end");
  EXPECT_EQ(ended(saved).steps, 6U);
}

TEST_F(TrainerInFolder, SaysThatItHasNoFolderWhereAnEventFails) {
  const TrainerEvents events{
      .on_step = [](auto, auto, const auto&) { throw um::Error{"cannot write"}; }};
  EXPECT_EQ(test::refusal([&] { run(small_options(4), events); }),
            "cannot write; step 1 was the last; with --checkpoint it would have been saved");
}

TEST_F(TrainerInFolder, WarnsOfAScheduleThatEndsBeforeIt) {
  TrainerOptions cosine = options(4);
  cosine.training.learning_rate = {.schedule = Schedule::kCosine, .cosine_steps = 4};
  EXPECT_EQ(warnings_of(cosine), std::vector<std::string>{});
  run(cosine);
  cosine.checkpoint.resume = true;
  cosine.training.steps = 7;
  EXPECT_EQ(warnings_of(cosine),
            std::vector<std::string>{
                "the cosine schedule ends with step 4: steps 5 to 7 are trained at learning rate "
                "0; give --cosine-steps 7, a --final-lr above 0, or another --schedule"});
}

}  // namespace
}  // namespace spillway
