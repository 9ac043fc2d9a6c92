#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "src/ranks/thread_communicator.h"
#include "src/train/trainer.h"
#include "tests/src/ranks/on_ranks.h"
#include "tests/src/small_training.h"

namespace spillway::testing {

inline constexpr std::size_t kMicroBatches = 4;

/// Numbers of ranks on which a training is repeated; one with uneven shares stands for all under a
/// sanitizer, with which a step takes ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::array<std::size_t, 1> kSeveralRanks{3};
#else
inline constexpr std::array<std::size_t, 3> kSeveralRanks{2, 3, 4};
#endif

/// Three steps on batches of 8.
[[nodiscard]] inline TrainerOptions options_of(nets::Network network) {
  return {.network = std::move(network),
          .step = {.batch = 8, .convolution = ConvolutionAlgorithm::kDirect},
          .memory = {.budget = "min+50%"},
          .planning = {.micro_batches = {.count = kMicroBatches}},
          .training = {.steps = 3, .evaluate_every = 0},
          // Small buckets, to have several.
          .ranks = {.buckets = {.first = um::Bytes{64}, .others = um::Bytes{512}}}};
}

/// The result of a rank.
struct Trained {
  std::vector<float> losses;
  std::string weights;
  bool kept_budget = true;
  prefetch::BucketRule buckets{};
  std::size_t exchanges = 0;
  friend bool operator==(const Trained&, const Trained&) = default;
};

/// Trains on so many ranks, which are threads. Returns what each came to; empty of one that failed,
/// which fails the test.
[[nodiscard]] inline std::vector<Trained> train_on(std::size_t ranks,
                                                   const TrainerOptions& options) {
  ThreadRanks group{ranks};
  std::vector<Trained> trained(ranks);
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    Trained& of_rank = trained[communicator.rank()];
    TrainerOptions own = options;
    own.ranks.communicator = communicator;
    Trainer trainer{
        test::small_context(), own, {.on_step = [&](auto, auto, const StepReport& report) {
          of_rank.losses.push_back(report.loss);
        }}};
    const TrainingSummary summary = trainer.run();
    of_rank.weights = summary.weights_sha256;
    of_rank.kept_budget = summary.near_peak <= summary.budget;
    of_rank.buckets = trainer.buckets();
    of_rank.exchanges = trainer.plan().exchanges.size();
  });
  EXPECT_EQ(errors, std::vector<std::string>(ranks));
  return trained;
}

}  // namespace spillway::testing
