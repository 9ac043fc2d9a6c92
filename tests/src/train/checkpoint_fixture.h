#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/host/host_backend.h"
#include "src/train/checkpoint/checkpoint.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "src/train/checkpoint/checkpoint_folder.h"
#include "tests/refusal.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"

namespace spillway::test {

/// A folder of checkpoints of a small network. The state of step `seed` is that of this seed.
class CheckpointFixture : public testing::Test {
 protected:
  static Checkpoint at_step(std::uint64_t step) {
    return {.key = {.network = "small 1x8x8, 3 classes",
                    .layers = "01ab",
                    .data = "synthetic",
                    .data_sha256 = "23cd",
                    .batch = 4,
                    .seed = 7},
            .settings = {.learning_rate = {.rate = 0.05F,
                                           .schedule = Schedule::kCosine,
                                           .warmup_steps = 2,
                                           .step_every = 3,
                                           .step_factor = 0.3F,
                                           .final_rate = 0.002F,
                                           .cosine_steps = 40},
                         .optimizer =
                             SgdOptions{.momentum = 0.8F, .weight_decay = 1e-4F, .nesterov = true},
                         .mixing = {.mixup = 0.2F, .cutmix = 1},
                         .threads = 3,
                         .precision = Precision::kTf32,
                         .deterministic = true,
                         .dropout = 0.1F},
            .step = step};
  }
  [[nodiscard]] State make_state() {
    return {step, prefetch::kSmallestPage, backend, device.memory()};
  }
  void save(std::uint64_t seed) {
    state.initialise(seed);
    checkpoints.save(at_step(seed), state);
  }
  // What the state of step `seed` is known by.
  [[nodiscard]] std::string hash(std::uint64_t seed) {
    State other = make_state();
    other.initialise(seed);
    return other.sha256();
  }
  // The steps done.
  [[nodiscard]] std::uint64_t load() {
    const ChosenCheckpoint chosen = checkpoints.go_on(key);
    checkpoints.load(chosen, state);
    return chosen.manifest.checkpoint.step;
  }
  [[nodiscard]] std::string refused() {
    return refusal([&] { return load(); });
  }
  [[nodiscard]] std::string refused(const CheckpointKey& wanted) {
    return refusal([&] { return checkpoints.go_on(wanted); });
  }
  [[nodiscard]] ChosenCheckpoint choose() const { return choose_checkpoint(folder.path()); }
  [[nodiscard]] nlohmann::json description() const {
    nlohmann::json json;
    std::ifstream{folder.file("checkpoint.json")} >> json;
    return json;
  }
  // Of the one checkpoint there is, with a digest that fits.
  void tamper(const std::string& name, const nlohmann::json& value) const {
    nlohmann::json json = description();
    json[name] = value;
    overwrite("checkpoint.json", sealed(json));
    overwrite(manifest_file(1), sealed(json));
  }
  void overwrite(const std::string& name, const std::string& text) const {
    std::ofstream{folder.file(name)} << text;
  }
  // Changes one bit in the middle of a file.
  void flip_bit(const std::string& name) const { flip_bit(name, content(name).size() / 2); }
  void flip_bit(const std::string& name, std::size_t place) const {
    std::string text = content(name);
    text.at(place) = static_cast<char>(text.at(place) ^ 1);
    overwrite(name, text);
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream file{folder.file(name), std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  // But for the lock.
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{folder.path()}) {
      if (entry.path().filename() != um::FolderLock::kFile)
        names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  TemporaryFolder folder;
  um::HostDevice device;
  host::HostBackend backend{1};
  Step step = make_training_step(small_network(), backend, {.batch = 4});
  State state = make_state();
  CheckpointFolder checkpoints{folder.path()};
  CheckpointKey key = at_step(0).key;
};

}  // namespace spillway::test
