// How trainings of several ranks, which are threads here, end before their last step, and begin not
// at all.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "src/host/host_backend.h"
#include "src/ranks/thread_communicator.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "src/train/trainer.h"
#include "tests/refusal.h"
#include "tests/src/ranks/on_ranks.h"
#include "tests/src/small_training.h"
#include "tests/src/train/data_parallel/trained_ranks.h"
#include "tests/temporary_folder.h"
#include "um/host/host_device.h"

namespace spillway {
namespace {

using testing::on_ranks;
using testing::options_of;
using testing::train_on;

// Whether each rank keeps a slice of the optimizer's numbers, for which all of them save.
class EndOfDividedRanks : public ::testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static TrainerOptions options_of_case() {
    TrainerOptions options = options_of(GetParam() ? test::wide_network() : test::small_network());
    options.ranks.divides_optimizer = GetParam();
    options.planning.planner = "capacity";
    return options;
  }
};

TEST_P(EndOfDividedRanks, AStopOnOneRankEndsAllAfterTheSameStep) {
  const test::TemporaryFolder folder;
  TrainerOptions options = options_of_case();
  options.training.steps = 50;
  options.checkpoint.folder = folder.file("stopped");
  ThreadRanks group{3};
  std::vector<std::uint64_t> last(3);
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    std::stop_source stop;
    TrainerOptions own = options;
    own.ranks.communicator = communicator;
    Trainer trainer{test::small_context(),
                    own,
                    {.on_step =
                         [&](auto step, auto, const auto&) {
                           last[communicator.rank()] = step;
                           if (communicator.rank() == 1 && step == 2) stop.request_stop();
                         }},
                    stop.get_token()};
    EXPECT_THROW(trainer.run(), Interrupted);
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
  EXPECT_EQ(last, std::vector<std::uint64_t>(3, 2));

  options.checkpoint.resume = true;
  options.training.steps = 3;
  EXPECT_EQ(train_on(2, options).front().losses.size(), 1U);
}

// Rank 1 alone is asked to stop, when `events_of` says. Returns the last step of each rank, 0 where
// there was none.
std::vector<std::uint64_t> stopped_after(
    const TrainerOptions& options,
    const std::function<TrainerEvents(const std::function<void()>& stop)>& events_of) {
  ThreadRanks group{3, {.time_limit = std::chrono::seconds{20}}};
  std::vector<std::uint64_t> last(3);
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    std::stop_source stop;
    const std::size_t rank = communicator.rank();
    TrainerOptions own = options;
    own.ranks.communicator = communicator;
    TrainerEvents events = events_of([&] {
      if (rank == 1) stop.request_stop();
    });
    events.on_step = [&last, rank, told = events.on_step](auto step, auto epoch, const auto& as) {
      last[rank] = step;
      if (told) told(step, epoch, as);
    };
    EXPECT_THROW((Trainer{test::small_context(), own, events, stop.get_token()}.run()), Interrupted)
        << "rank " << rank;
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
  return last;
}

TEST(EndOfRanks, AStopOnOneRankWhileItMeasuresEndsAllBeforeTheyTrain) {
  const auto last = stopped_after(options_of(test::small_network()), [](const auto& stop) {
    return TrainerEvents{.on_measuring = [stop](double /*fraction*/) { stop(); }};
  });
  EXPECT_EQ(last, std::vector<std::uint64_t>(3, 0));
}

TEST_P(EndOfDividedRanks, AStopOnOneRankBeforeAnEvaluationEndsAllWithoutIt) {
  const test::TemporaryFolder folder;
  TrainerOptions options = options_of_case();
  options.training.steps = 6;
  options.training.evaluate_every = 2;
  options.checkpoint.folder = folder.file("stopped");
  const auto last = stopped_after(options, [](const auto& stop) {
    return TrainerEvents{.on_step = [stop](auto step, auto /*epoch*/, const auto& /*report*/) {
      if (step == 2) stop();
    }};
  });
  EXPECT_EQ(last, std::vector<std::uint64_t>(3, 2));

  options.checkpoint.resume = true;
  EXPECT_EQ(train_on(2, options).front().losses.size(), 4U);
}

// The first rank alone writes files, and its disk is full.
TEST_P(EndOfDividedRanks, AnEventThatFailsOnOneRankEndsAllAfterTheSameStep) {
  for (const std::uint64_t at : {2, 6}) {  // or with the last one
    const test::TemporaryFolder folder;
    TrainerOptions options = options_of_case();
    options.training.steps = 6;
    options.checkpoint.folder = folder.file("stopped");
    ThreadRanks group{3, {.time_limit = std::chrono::seconds{20}}};
    const auto errors = on_ranks(group, [&](Communicator& communicator) {
      TrainerOptions own = options;
      own.ranks.communicator = communicator;
      const bool is_first = communicator.rank() == 0;
      Trainer trainer{test::small_context(), own, {.on_step = [&](auto step, auto, const auto&) {
                        if (is_first && step == at) throw um::Error{"the disk is full"};
                      }}};
      trainer.run();
    });
    const std::string sentence =
        "the disk is full; the checkpoint is of step " + std::to_string(at) +
        (at < 6 ? ", and --resume goes on from there" : ", the last one: nothing is left to train");
    EXPECT_EQ(errors, std::vector<std::string>(3, sentence));
    EXPECT_EQ(choose_checkpoint(options.checkpoint.folder).manifest.checkpoint.step, at);
  }
}

// Not all of them see the first one's folder.
TEST(EndOfRanks, RefusesRanksThatDoNotAllGoOn) {
  const test::TemporaryFolder folder;
  TrainerOptions options = options_of(test::small_network());
  options.checkpoint.folder = folder.file("kept");
  static_cast<void>(train_on(2, options));
  ThreadRanks group{2};
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    TrainerOptions own = options;
    own.ranks.communicator = communicator;
    own.checkpoint.resume = communicator.rank() == 0;
    const Trainer trainer{test::small_context(), own};
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("the ranks differ in what they find in the checkpoint folder: "),
              std::string::npos)
        << error;
    EXPECT_NE(error.find("has 'a checkpoint'"), std::string::npos) << error;
  }
}

// On both of two ranks that are to go on.
void expect_nothing_left(TrainerOptions options) {
  options.checkpoint.resume = true;
  ThreadRanks group{2};
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    TrainerOptions own = options;
    own.ranks.communicator = communicator;
    EXPECT_THROW((Trainer{test::small_context(), own}), NothingLeft);
  });
  EXPECT_EQ(errors, testing::no_errors(group));
}

TEST_P(EndOfDividedRanks, NothingLeftIsSoOnAllRanks) {
  const test::TemporaryFolder folder;
  TrainerOptions options = options_of_case();
  options.checkpoint.folder = folder.file("done");
  static_cast<void>(train_on(2, options));
  expect_nothing_left(options);
}

// Learns nothing, so that no evaluation is better than the first.
TrainerOptions options_without_progress() {
  TrainerOptions options = options_of(test::network_without_norm());
  options.training.steps = 10;
  options.training.evaluate_every = 1;
  options.training.learning_rate.rate = 0;
  options.patience = 2;
  return options;
}

TEST_P(EndOfDividedRanks, IsEarlyOnAllWhereNoEvaluationIsBetter) {
  const test::TemporaryFolder folder;
  TrainerOptions options = options_without_progress();
  options.ranks.divides_optimizer = GetParam();
  options.checkpoint = {.folder = folder.file("kept"), .keep = 1, .keep_best = true};
  for (const testing::Trained& trained : train_on(3, options)) {
    EXPECT_EQ(trained.losses.size(), 3U);
  }
  const std::string kept = options.checkpoint.folder;
  EXPECT_EQ(choose_best_checkpoint(kept).manifest.checkpoint.step, 1U);
  EXPECT_EQ(choose_checkpoint(kept).manifest.checkpoint.step, 3U);

  expect_nothing_left(options);
}

TEST(EndOfRanks, RefusesRanksThatDoNotTrainTheSame) {
  ThreadRanks group{2};
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    TrainerOptions own = options_of(test::small_network());
    own.ranks.communicator = communicator;
    own.ranks.agreement = {{.name = "command line", .text = std::to_string(communicator.rank())}};
    Trainer{test::small_context(), own};
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("command line"), std::string::npos) << error;
  }
}

TEST(EndOfRanks, RefusesOtherNumbersOfThreads) {
  ThreadRanks group{2};
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    TrainerOptions own = options_of(test::small_network());
    own.ranks.communicator = communicator;
    Trainer{host::open_context(std::make_unique<um::HostDevice>(), 1 + communicator.rank()), own};
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("the ranks differ in threads: rank"), std::string::npos) << error;
  }
}

TEST(EndOfRanks, RefusesWhatRanksCannotDo) {
  const auto refusal = [](const auto& change) {
    ThreadRanks group{2};
    return on_ranks(group,
                    [&](Communicator& communicator) {
                      TrainerOptions options = options_of(test::small_network());
                      options.ranks.communicator = communicator;
                      change(options);
                      Trainer{test::small_context(), options};
                    })
        .front();
  };
  const auto cut = [&](const MicroBatchChoice& choice) {
    return refusal([&](auto& options) { options.planning.micro_batches = choice; });
  };
  EXPECT_NE(cut({.count = 3}).find("equal micro-batches"), std::string::npos);
  EXPECT_NE(cut({.size = 3}).find("equal micro-batches"), std::string::npos);
  EXPECT_NE(cut({.is_automatic = true}).find("--micro-batches auto"), std::string::npos);
  EXPECT_NE(
      refusal([](auto& options) { options.planning.planner = "on-demand"; }).find("on-demand"),
      std::string::npos);
  EXPECT_NE(refusal([](auto& options) {
              options.planning.update = UpdateRule::kFar;
              options.ranks.divides_optimizer = true;
            }).find("--update far"),
            std::string::npos);
}

TEST(EndOfRanks, RefusesMoreRanksThanMicroBatches) {
  ThreadRanks group{3};
  TrainerOptions options = options_of(test::small_network());
  options.planning.micro_batches.count = 2;
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    TrainerOptions own = options;
    own.ranks.communicator = communicator;
    Trainer{test::small_context(), own};
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("more --micro-batches"), std::string::npos) << error;
  }
}

// The first rank cannot write: all of them end, and none waits for slices.
TEST(EndOfRanks, ACheckpointThatCannotBeWrittenEndsAll) {
  const test::TemporaryFolder folder;
  TrainerOptions options = options_of(test::wide_network());
  options.ranks.divides_optimizer = true;
  options.planning.planner = "capacity";
  options.checkpoint.folder = folder.file("run");
  options.training.checkpoint_every = 2;
  ThreadRanks group{3, {.time_limit = std::chrono::seconds{20}}};
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    TrainerOptions own = options;
    own.ranks.communicator = communicator;
    Trainer trainer{test::small_context(), own, {.on_step = [&](auto step, auto, const auto&) {
                      if (communicator.rank() > 0 || step != 1) return;
                      std::filesystem::remove_all(options.checkpoint.folder);
                    }}};
    trainer.run();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, errors[0]);
  EXPECT_NE(errors[0].find(options.checkpoint.folder), std::string::npos) << errors[0];
}

INSTANTIATE_TEST_SUITE_P(WholeAndDivided, EndOfDividedRanks, ::testing::Bool());

}  // namespace
}  // namespace spillway
