// The power goes at any moment of a training's checkpoints.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/host/host_backend.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "src/train/checkpoint/checkpoint_folder.h"
#include "tests/src/small_training.h"
#include "tests/src/train/power/recorded_folder.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

// What a disk may hold of a folder when the power goes after the first calls of a recording. As
// POSIX has it, no more is promised than this: the content of a file is there as it was when the
// file was last synced; a name is as it was when the folder was last synced. Of all later changes
// of names any part may be there, in any selection, and of later content nothing, half, all, or
// zeros in its place.
class DiskAfterPowerLoss {
 public:
  struct State {
    std::map<std::string, std::string> files;   // content by name
    std::optional<std::uint64_t> acknowledged;  // the last step that must stay
  };

  explicit DiskAfterPowerLoss(const std::vector<test::FileCall>& calls) : calls_{calls} {}

  // Calls `visit` with every state, each once.
  void for_each(const std::function<void(const State&)>& visit) {
    for (const test::FileCall& call : calls_) {
      visit_states(visit);
      apply(call);
    }
    visit_states(visit);
  }

 private:
  using Kind = test::FileCall::Kind;
  enum class Lost { kNothing, kAll, kHalf, kZeroed };
  struct File {
    std::string content;
    std::size_t synced = 0;
  };

  void apply(const test::FileCall& call) {
    switch (call.kind) {
      case Kind::kCreate:
      case Kind::kRename:
      case Kind::kRemove:
        unsynced_.push_back(call);
        break;
      case Kind::kWrite:
        files_[call.file].content += call.bytes;
        break;
      case Kind::kSyncFile:
        files_[call.file].synced = files_[call.file].content.size();
        break;
      case Kind::kSyncFolder:
        for (const test::FileCall& change : unsynced_) rename(change, names_);
        unsynced_.clear();
        break;
      case Kind::kAcknowledge:
        acknowledged_ = call.step;
        break;
    }
  }

  // The new name of a file is there whether or not its old one was.
  static void rename(const test::FileCall& change, std::map<std::string, std::size_t>& names) {
    names.erase(change.name);
    if (change.kind != Kind::kRemove) names[change.to] = change.file;
  }

  void visit_states(const std::function<void(const State&)>& visit) {
    for (std::uint64_t kept = 0; kept < std::uint64_t{1} << unsynced_.size(); ++kept) {
      std::map<std::string, std::size_t> names = names_;
      for (std::size_t i = 0; i < unsynced_.size(); ++i) {
        if ((kept >> i & 1U) != 0) rename(unsynced_[i], names);
      }
      for (const Lost lost : {Lost::kNothing, Lost::kAll, Lost::kHalf, Lost::kZeroed}) {
        State state{.acknowledged = acknowledged_};
        for (const auto& [name, file] : names) state.files[name] = content_of(file, lost);
        if (visited_.insert(key_of(state)).second) visit(state);
      }
    }
  }

  std::string content_of(std::size_t number, Lost lost) {
    const File& file = files_[number];
    const std::string synced = file.content.substr(0, file.synced);
    const std::string later = file.content.substr(file.synced);
    switch (lost) {
      case Lost::kAll:
        return synced;
      case Lost::kHalf:
        return synced + later.substr(0, later.size() / 2);
      case Lost::kZeroed:
        return synced + std::string(later.size(), '\0');
      case Lost::kNothing:
        break;
    }
    return synced + later;
  }

  static std::string key_of(const State& state) {
    std::string key = std::to_string(state.acknowledged.value_or(0));
    for (const auto& [name, content] : state.files) {
      key += '\n' + name + ' ' + std::to_string(std::hash<std::string>{}(content));
    }
    return key;
  }

  const std::vector<test::FileCall>& calls_;
  std::map<std::size_t, File> files_;         // as the program sees them
  std::map<std::string, std::size_t> names_;  // as they were when the folder was synced
  std::vector<test::FileCall> unsynced_;      // changes of names since
  std::optional<std::uint64_t> acknowledged_;
  std::set<std::string> visited_;
};

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
    checkpoints.set_plan(plan, step_.graph);
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
  fs::create_directory(folder());
  recording_.emplace(folder());
  {
    CheckpointFolder checkpoints{folder(), /*keep=*/1};
    set_plan(checkpoints, "first");
    for (const std::uint64_t step : {1, 2, 3, 4}) save(checkpoints, step);
  }
  const std::size_t states = expect_every_state_goes_on();
  EXPECT_GT(states, 300U);
  EXPECT_GT(begun_, 20U);
  RecordProperty("states", static_cast<int>(states));
}

// With another plan, and keeping two checkpoints.
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
