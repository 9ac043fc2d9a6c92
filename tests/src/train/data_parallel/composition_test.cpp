// Features of a training that go together: each combination ends with the bits of its resident
// twin, or is refused in a sentence with the reason. SPILLWAY_ALL_COMPOSITIONS=1 tries all 640,
// else every fourth is tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "nets/builder.h"
#include "prefetch/files/plan_file.h"
#include "src/train/trainer.h"
#include "tests/refusal.h"
#include "tests/src/printed_memory_mode.h"
#include "tests/src/ranks/on_ranks.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"

namespace spillway::testing {
namespace {

constexpr std::size_t kSamples = 8;
constexpr const char* kMixup = "mixup";
constexpr const char* kPlanFile = "plan file";

struct Combination {
  std::size_t micro_batches = 1;  // of a rank's batch; 1 of several ranks: one each
  std::size_t ranks = 1;
  bool moves_state = false;
  bool updates_far = false;
  std::string planner;
  MemoryMode mode = MemoryMode::kResident;
  std::string extra;

  [[nodiscard]] std::size_t parts() const { return std::max(micro_batches, ranks); }
};

std::ostream& operator<<(std::ostream& out, const Combination& c) {
  return out << c.micro_batches << " micro-batches, " << c.ranks << " ranks, state "
             << (c.moves_state ? "far" : "near") << ", updates " << (c.updates_far ? "far" : "near")
             << ", " << c.planner << ", " << to_string(c.mode) << ", " << c.extra;
}

// Tensors are most of what it needs, and weights large enough to move.
nets::Network network() {
  nets::Builder net{"composed", {1, 16, 16}};
  const auto convolution = [&](const char* name, nets::NodeId x) {
    return net.convolution(name, x,
                           {.channels = 16, .kernel = nets::square(3), .padding = nets::square(1)});
  };
  nets::NodeId x = net.relu("relu1", net.batch_norm("norm", convolution("conv1", net.input())));
  x = net.relu("relu2", convolution("conv2", x));
  x = net.pool("pool", net.relu("relu3", convolution("conv3", x)), {});
  x = net.relu("relu4", net.linear("fc1", x, {.features = 40}));
  return net.build(net.linear("fc2", x, {.features = 3}));
}

TrainerOptions options_of(const Combination& c) {
  TrainerOptions options{
      .network = network(),
      .step = {.batch = kSamples, .convolution = ConvolutionAlgorithm::kDirect},
      .memory = {.budget = c.planner == "vdnn-conv" ? "110%" : "95%", .mode = c.mode},
      .planning = {.planner = c.planner},
      .training = {.steps = 2, .evaluate_every = 0}};
  if (c.mode == MemoryMode::kResident) options.memory.budget = "auto";
  if (c.mode != MemoryMode::kResident) {
    options.planning.state = c.moves_state ? StateRule::kFar : StateRule::kNear;
    options.planning.update = c.updates_far ? UpdateRule::kFar : UpdateRule::kNear;
  }
  if (c.parts() > 1) options.planning.micro_batches.count = c.parts();
  AdamOptions adam;
  if (c.extra == kMixup) options.training.mixing.mixup = 0.4F;
  if (c.extra == "clip") adam.clip_norm = 0.1F;
  if (c.extra == "average") options.step.average_decay = 0.9;
  options.step.optimizer = adam;
  return options;
}

// Calls `use` with each rank's number and trainer.
void on_trainers(const Combination& c, const TrainerOptions& options,
                 const std::function<void(std::size_t, Trainer&)>& use) {
  ThreadRanks group{c.ranks};
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    TrainerOptions own = options;
    if (c.ranks > 1) own.ranks.communicator = communicator;
    Trainer trainer{test::small_context(), own};
    use(communicator.rank(), trainer);
  });
  if (!errors.front().empty()) throw um::Error{errors.front()};
}

// The weights of each rank.
std::vector<std::string> train(const Combination& c, const TrainerOptions& options) {
  std::vector<std::string> weights(c.ranks);
  on_trainers(c, options, [&](std::size_t rank, Trainer& trainer) {
    weights[rank] = trainer.run().weights_sha256;
  });
  return weights;
}

// Returns the words that refuse a combination, empty where none may: it contradicts itself, or a
// planner's authors leave state near.
std::string reason_of(const Combination& c) {
  const bool leaves_state = c.planner == "vdnn-conv" || c.planner == "superneurons";
  if (c.updates_far && !c.moves_state) return "updates on the far side are of state that is far";
  // An average is made of parameters when they are new, so that these come near.
  if (c.updates_far && c.extra == "average" && !leaves_state) {
    return "no weights of this network are large enough to be updated on the far side";
  }
  return c.moves_state && leaves_state ? "leaves weights and optimizer state near" : "";
}

class Compositions : public ::testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {
 protected:
  // A plan of the same training, in a file.
  std::string plan_of(const Combination& c) {
    const std::string path = folder_.file("plan.json");
    on_trainers(c, options_of(c), [&](std::size_t rank, const Trainer& trainer) {
      if (rank == 0) std::ofstream{path} << prefetch::to_json(trainer.plan(), trainer.graph());
    });
    return path;
  }

  void expect_twin(const Combination& c) {
    static const bool tries_all = std::getenv("SPILLWAY_ALL_COMPOSITIONS") != nullptr;
    if (++number_ % 4 != 0 && !tries_all) return;
    const std::string reason = reason_of(c);
    TrainerOptions options = options_of(c);
    if (c.extra == kPlanFile) options.planning.plan_file = reason.empty() ? plan_of(c) : "none";
    if (!reason.empty()) {
      const std::string sentence = test::refusal([&] { return train(c, options); });
      EXPECT_NE(sentence.find(reason), std::string::npos) << c << ": " << sentence;
      return;
    }
    try {
      EXPECT_EQ(train(c, options), std::vector<std::string>(c.ranks, twin_of(c))) << c;
    } catch (const um::Error& error) {
      ADD_FAILURE() << c << ": " << error.what();
    }
  }

 private:
  // Near, without a planner and other ranks, and cut as often.
  const std::string& twin_of(const Combination& c) {
    std::string& weights = twins_[{c.parts(), c.extra}];
    if (weights.empty()) {
      const Combination twin{
          .micro_batches = c.parts(), .ranks = 1, .planner = "joint", .extra = c.extra};
      weights = train(twin, options_of(twin)).front();
    }
    return weights;
  }

  std::size_t number_ = 0;  // of the combination
  test::TemporaryFolder folder_;
  std::map<std::tuple<std::size_t, std::string>, std::string> twins_;
};

TEST_P(Compositions, EndWithTheBitsOfTheirResidentTwinsOrSayWhyNot) {
  const auto& [micro_batches, ranks] = GetParam();
  for (const bool moves_state : {false, true}) {
    for (const bool updates_far : {false, true}) {
      for (const char* planner : {"joint", "capacity", "vdnn-conv", "superneurons"}) {
        for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy}) {
          for (const char* extra : {"", kMixup, "clip", "average", kPlanFile}) {
            expect_twin({.micro_batches = micro_batches,
                         .ranks = ranks,
                         .moves_state = moves_state,
                         .updates_far = updates_far,
                         .planner = planner,
                         .mode = mode,
                         .extra = extra});
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfRanks, Compositions,
                         ::testing::Combine(::testing::Values(1U, 4U), ::testing::Values(1U, 2U)));

}  // namespace
}  // namespace spillway::testing
