// The power goes at any moment of a training's checkpoints.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/host/host_backend.h"
#include "src/train/checkpoint_check.h"
#include "src/train/checkpoint_folder.h"
#include "tests/src/small_training.h"
#include "tests/src/train/power/disk_after_power_loss.h"
#include "tests/src/train/power/recorded_folder.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

using test::DiskAfterPowerLoss;

class PowerLoss : public testing::Test {
 protected:
  [[nodiscard]] State make_state() {
    return {step_, prefetch::kSmallestPage, backend_, device_.memory()};
  }
  [[nodiscard]] static Checkpoint at_step(std::uint64_t step) {
    return {.key = {.network = "small", .batch = 4, .seed = 7}, .step = step};
  }
  [[nodiscard]] std::string folder() const { return temporary_.file("checkpoint"); }

  // Saves the checkpoint of `step`, whose state is that of this seed, and trains on.
  void save(CheckpointFolder& checkpoints, std::uint64_t step) {
    State state = make_state();
    state.initialise(step);
    hashes_[step] = state.sha256();
    checkpoints.save(at_step(step), state);
    recording_->acknowledge(step);
  }
  void set_plan(CheckpointFolder& checkpoints, const std::string& planner) const {
    prefetch::Plan plan;
    plan.graph = prefetch::fingerprint(step_.graph);
    plan.planner = planner;
    checkpoints.set_plan(0, 1, plan, step_.graph);
  }

  // Every state that the power may leave goes on from what was acknowledged, or from what came
  // after it; or, before anything was, begins anew: as --resume auto does. A kill leaves one of
  // these, too. Returns how many there are.
  std::size_t expect_every_state_goes_on() {
    const std::vector<test::FileCall> calls = recording_->calls();
    recording_.reset();
    std::size_t states = 0;
    DiskAfterPowerLoss{calls}.for_each([&](const DiskAfterPowerLoss::State& state) {
      ++states;
      expect_goes_on(state);
    });
    return states;
  }

  test::TemporaryFolder temporary_;
  std::optional<test::RecordedFolder> recording_;

 private:
  void expect_goes_on(const DiskAfterPowerLoss::State& disk) {
    const std::string place = temporary_.file("after");
    fs::remove_all(place);
    fs::create_directory(place);
    std::string listed;
    for (const auto& [name, content] : disk.files) {
      std::ofstream{place + '/' + name, std::ios::binary} << content;
      listed += ' ' + name;
    }
    try {
      if (!holds_checkpoint(place)) return expect_begins(disk, place);
      CheckpointFolder checkpoints{place};
      const ChosenCheckpoint chosen = checkpoints.go_on(at_step(0).key);
      State state = make_state();
      checkpoints.load(chosen, state);
      const std::uint64_t step = chosen.manifest.checkpoint.step;
      EXPECT_GE(step, disk.acknowledged.value_or(0)) << listed;
      EXPECT_EQ(state.sha256(), hashes_.at(step)) << listed;
    } catch (const um::Error& error) {
      ADD_FAILURE() << error.what() << listed;
    }
  }

  // And saves its first checkpoint over what is left of that before.
  void expect_begins(const DiskAfterPowerLoss::State& disk, const std::string& place) {
    EXPECT_FALSE(disk.acknowledged);
    CheckpointFolder checkpoints{place};
    checkpoints.expect_empty();
    State state = make_state();
    state.initialise(1);
    checkpoints.save(at_step(1), state);
    EXPECT_EQ(choose_checkpoint(place).manifest.checkpoint.step, 1U);
    ++begun_;
  }

  um::HostDevice device_;
  host::HostBackend backend_{1};
  Step step_ = make_training_step(test::small_network(), backend_, {.batch = 4});
  std::map<std::uint64_t, std::string> hashes_;

 protected:
  std::size_t begun_ = 0;  // states in which nothing was saved
};

TEST_F(PowerLoss, LeavesTheOldCheckpointOrTheNew) {
  for (const std::size_t keep : {1, 2}) {
    fs::create_directory(folder());
    recording_.emplace(folder());
    {
      CheckpointFolder checkpoints{folder(), keep};
      set_plan(checkpoints, "first");
      for (const std::uint64_t step : {1, 2, 3, 4}) save(checkpoints, step);
    }
    const std::size_t states = expect_every_state_goes_on();
    EXPECT_GT(states, 300U) << "keeping " << keep;
    EXPECT_GT(std::exchange(begun_, 0), 20U);
    RecordProperty("states_keeping_" + std::to_string(keep), static_cast<int>(states));
    fs::remove_all(folder());
  }
}

// With another plan.
TEST_F(PowerLoss, LeavesTheOldCheckpointOrTheNewOfATrainingThatGoesOn) {
  fs::create_directory(folder());
  recording_.emplace(folder());
  {
    CheckpointFolder checkpoints{folder()};
    set_plan(checkpoints, "first");
    for (const std::uint64_t step : {2, 4}) save(checkpoints, step);
  }
  {
    CheckpointFolder checkpoints{folder()};
    static_cast<void>(checkpoints.go_on(at_step(0).key));
    set_plan(checkpoints, "second");
    for (const std::uint64_t step : {5, 6, 7}) save(checkpoints, step);
  }
  const std::size_t states = expect_every_state_goes_on();
  EXPECT_GT(states, 300U);
  RecordProperty("states", static_cast<int>(states));
}

}  // namespace
}  // namespace spillway
