#include "src/train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/profile_file.h"
#include "tests/refusal.h"
#include "tests/src/clocked_backend.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"

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
  Trainer trainer{test::small_context(),
                  small_options(3),
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
  nets::Builder net{"choice", {64, 14, 14}};
  const nets::NodeId x = net.convolution(
      "conv", net.input(), {.channels = 64, .kernel = nets::square(3), .padding = nets::square(1)});
  TrainerOptions options{.network = net.build(net.linear("fc", x, {.features = 3})),
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

// The model's link copies what tasks read, as the copy mode does.
TEST(Trainer, CopiesNothingThatIsReadWithUnifiedMemory) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() / "profile.json";
  TrainerOptions options = small_options(1);
  const prefetch::TaskGraph graph = Trainer{test::small_context(), options}.graph();
  const prefetch::Profile profile = prefetch::model_profile(graph, prefetch::find_machine("v100"));
  prefetch::write_json(prefetch::to_json(profile, graph), path);
  options.planning.profile_file = path;
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

}  // namespace
}  // namespace spillway
