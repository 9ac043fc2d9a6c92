// What is exported and taken back has the same bits.

#include <gtest/gtest.h>

#include <string>

#include "src/io/weights/export_weights.h"
#include "tests/refusal.h"
#include "tests/src/drawn_batch.h"
#include "tests/src/network_in_memory.h"
#include "tests/src/state_numbers.h"
#include "tests/src/weights/weight_networks.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

constexpr std::size_t kBatch = 2;

struct RoundTrip {
  std::string network;
  WeightSource source;
};

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const RoundTrip& c, std::ostream* out) { *out << c.network; }

NetworkInMemory in_memory(const std::string& name) {
  return {
      weight_network(name), {.batch = kBatch, .optimizer = AdamOptions{}}, MemoryMode::kResident};
}

// After a step: statistics, biases and the optimizer's numbers are not those of the beginning.
void train_a_step(NetworkInMemory& net) {
  net.session().state().initialise(1);
  const Batch batch = drawn_batch(net.network(), kBatch, 0);
  net.session().train({.seed = 1, .step = 0, .learning_rate = 0.01F, .batch = &batch});
}

class RoundTrips : public testing::TestWithParam<RoundTrip> {
 protected:
  void export_from(const State& state) const {
    state.save(folder_.file("checkpoint"));
    export_weights(SafetensorsReader{folder_.file("checkpoint")}, GetParam().network,
                   {.source = GetParam().source}, file());
  }
  [[nodiscard]] std::string file() const { return folder_.file("weights.safetensors"); }

 private:
  TemporaryFolder folder_;
};

TEST_P(RoundTrips, KeepEveryBit) {
  NetworkInMemory first = in_memory(GetParam().network);
  train_a_step(first);
  export_from(first.session().state());
  NetworkInMemory second = in_memory(GetParam().network);
  train_a_step(second);  // whose optimizer is to forget it

  const WeightFile weights{file(), named(second.network())};
  second.session().state().start_from(
      [&](const std::string& name, std::span<float> tensor) { weights.read(name, tensor); });

  EXPECT_EQ(second.session().state().sha256(), first.session().state().sha256());
  for (const BlockNumbers& block : numbers_of(second.session().state(), second.training_step())) {
    if (block.name.find(".exp_avg") == std::string::npos) continue;
    EXPECT_EQ(block.values, std::vector<float>(block.values.size())) << block.name;
  }
}

INSTANTIATE_TEST_SUITE_P(OfEachNetwork, RoundTrips,
                         testing::Values(RoundTrip{"gpt", WeightSource::kHuggingFace},
                                         RoundTrip{"llama", WeightSource::kHuggingFace},
                                         RoundTrip{"bert", WeightSource::kHuggingFace},
                                         RoundTrip{"vit", WeightSource::kHuggingFace},
                                         RoundTrip{"vit", WeightSource::kTorchvision},
                                         RoundTrip{"thin-resnet", WeightSource::kTorchvision}),
                         [](const auto& given) {
                           const bool is_hf = given.param.source == WeightSource::kHuggingFace;
                           const std::string name = given.param.network;
                           return name.substr(0, name.find('-')) + (is_hf ? "_hf" : "_torchvision");
                         });

std::string export_refusal(const std::vector<StoredTensor>& tensors, WeightSource source) {
  const TemporaryFolder folder;
  SafetensorsWriter writer{folder.file("checkpoint"), tensors};
  for (const StoredTensor& tensor : tensors) {
    writer.append(std::vector<float>(element_count(tensor.shape)));
  }
  writer.commit();
  const SafetensorsReader checkpoint{folder.file("checkpoint")};
  std::string sentence = refusal(
      [&] { return export_weights(checkpoint, "mine", {.source = source}, folder.file("out")); });
  EXPECT_FALSE(std::filesystem::exists(folder.file("out")));
  return sentence;
}

TEST(Export, IsRefusedOfNetworksWithoutSuchNames) {
  EXPECT_EQ(
      export_refusal({{"conv1.weight", {2, 3, 3, 3}}}, WeightSource::kTorchvision),
      std::string{"network mine has no names in files of other libraries; "} + kNetworksWithNames);
  EXPECT_EQ(export_refusal(named(weight_network("gpt")).arrays, WeightSource::kTorchvision),
            "network mine has no names of torchvision's; it has those of Hugging Face's GPT-2");
}

// VGG on images of 32x32: what it pools to is one pixel.
TEST(Export, IsRefusedWhereTheNetworkIsAnotherThere) {
  EXPECT_EQ(export_refusal({{"conv1_1.weight", {4, 3, 3, 3}}, {"fc6.weight", {4, 4}}},
                           WeightSource::kTorchvision),
            "network mine differs from torchvision's VGG: the first linear layer there reads 7x7 "
            "pixels; train with --image-size 224");
}

}  // namespace
}  // namespace spillway::test
