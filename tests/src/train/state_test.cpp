#include "src/train/checkpoint/state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/host/host_backend.h"
#include "src/io/safetensors.h"
#include "tests/refusal.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using test::refusal;

class StateTest : public testing::Test {
 protected:
  [[nodiscard]] State make_state() {
    return {step, prefetch::kSmallestPage, backend, device.memory()};
  }
  [[nodiscard]] std::string path() const { return folder.file("state.safetensors"); }
  // Writes a file of these tensors, all their values zero.
  void write(const std::vector<StoredTensor>& tensors) const {
    SafetensorsWriter writer{path(), tensors};
    for (const StoredTensor& tensor : tensors) {
      std::size_t count = 1;
      for (const std::size_t extent : tensor.shape) count *= extent;
      writer.append(std::vector<float>(count));
    }
    writer.commit();
  }

  test::TemporaryFolder folder;
  um::HostDevice device;
  host::HostBackend backend{1};
  Step step = make_training_step(test::small_network(), backend, {.batch = 2});
  State state = make_state();
};

TEST_F(StateTest, ComesBackFromAFile) {
  state.initialise(7);
  state.save(path());
  State other = make_state();
  EXPECT_NE(other.sha256(), state.sha256());
  other.load(path());
  EXPECT_EQ(other.sha256(), state.sha256());
}

// Momentum is no part of sha256(): what the second file holds of it came through a State.
TEST_F(StateTest, TakesMomentumAlong) {
  state.save(path());
  std::vector<StoredTensor> tensors = SafetensorsReader{path()}.tensors();
  SafetensorsWriter writer{path(), tensors};
  for (const StoredTensor& tensor : tensors) {
    std::size_t count = 1;
    for (const std::size_t extent : tensor.shape) count *= extent;
    writer.append(std::vector<float>(count, tensor.name == "fc.momentum.weight" ? 3.5F : 0.F));
  }
  writer.commit();
  state.load(path());
  state.save(folder.file("again"));
  const SafetensorsReader again{folder.file("again")};
  std::vector<float> momentum(std::size_t{3} * 4 * 6 * 6);
  again.read(again.find("fc.momentum.weight").value(), momentum);
  EXPECT_EQ(momentum, std::vector<float>(momentum.size(), 3.5F));
}

// As PyTorch names and shapes them: 4 kernels of 1x3x3, 4 channels, 3 outputs of 4x6x6 inputs.
TEST_F(StateTest, IsStoredAsArraysThatOtherProgramsKnow) {
  state.save(path());
  std::vector<std::string> found;
  const std::vector<StoredTensor> tensors = SafetensorsReader{path()}.tensors();
  for (const auto& [name, shape] : tensors) {
    std::string text = name;
    for (const std::size_t extent : shape) text += " " + std::to_string(extent);
    found.push_back(text);
  }
  EXPECT_EQ(found,
            (std::vector<std::string>{
                "conv.weight 4 1 3 3", "conv.bias 4", "conv.momentum.weight 4 1 3 3",
                "conv.momentum.bias 4", "norm.weight 4", "norm.bias 4", "norm.momentum.weight 4",
                "norm.momentum.bias 4", "norm.running_mean 4", "norm.running_var 4",
                "fc.weight 3 144", "fc.bias 3", "fc.momentum.weight 3 144", "fc.momentum.bias 3"}));
}

// PyTorch's names of Adam's moments.
TEST_F(StateTest, OfAdamHasTwoMomentsOfEachParameterZeroAtFirst) {
  const Step adam =
      make_training_step(test::small_network(), backend, {.batch = 2, .optimizer = AdamOptions{}});
  State moments{adam, prefetch::kSmallestPage, backend, device.memory()};
  moments.initialise(7);
  moments.save(path());
  const SafetensorsReader file{path()};
  for (const char* layer : {"conv", "norm", "fc"}) {
    for (const char* moment : {".exp_avg", ".exp_avg_sq"}) {
      const std::string bias = std::string{layer} + moment + ".bias";
      ASSERT_TRUE(file.find(bias).has_value()) << bias;
      std::vector<float> numbers(file.tensors()[*file.find(bias)].shape.at(0), 1.F);
      file.read(*file.find(bias), numbers);
      EXPECT_EQ(numbers, std::vector<float>(numbers.size(), 0.F)) << bias;
    }
  }
  EXPECT_EQ(file.tensors().size(), 3U * 3 * 2 + 2);
  state.initialise(7);
  EXPECT_EQ(moments.sha256(), state.sha256()) << "weights begin alike whatever the optimizer";
}

// What a batch norm starts with is known: weights and variances are one, the rest is zero.
TEST_F(StateTest, StoresWhatItHolds) {
  state.initialise(7);
  state.save(path());
  const SafetensorsReader file{path()};
  const auto values = [&](const char* name) {
    std::vector<float> numbers(4);
    file.read(file.find(name).value(), numbers);
    return numbers;
  };
  EXPECT_EQ(values("norm.weight"), std::vector<float>(4, 1));
  EXPECT_EQ(values("norm.bias"), std::vector<float>(4, 0));
  EXPECT_EQ(values("norm.running_mean"), std::vector<float>(4, 0));
  EXPECT_EQ(values("norm.running_var"), std::vector<float>(4, 1));
}

TEST_F(StateTest, RefusesAFileWithoutOneOfItsTensorsAndStaysAsItWas) {
  state.initialise(7);
  const std::string before = state.sha256();
  state.save(path());
  std::vector<StoredTensor> tensors = SafetensorsReader{path()}.tensors();
  tensors.pop_back();
  write(tensors);
  EXPECT_EQ(refusal([&] { state.load(path()); }),
            path() + " has no tensor 'fc.momentum.bias'; it is no checkpoint of this network");
  EXPECT_EQ(state.sha256(), before);
}

// A file with as many numbers, but turned, belongs to another network.
TEST_F(StateTest, RefusesATensorOfAnotherShape) {
  state.save(path());
  std::vector<StoredTensor> tensors = SafetensorsReader{path()}.tensors();
  std::ranges::find(tensors, "fc.weight", &StoredTensor::name)->shape = {144, 3};
  write(tensors);
  EXPECT_EQ(refusal([&] { state.load(path()); }),
            "tensor 'fc.weight' of " + path() +
                " is (144, 3), but this network's is (3, 144); it is no checkpoint of this "
                "network");
}

}  // namespace
}  // namespace spillway
