// Every kind of network there is, on small images: within a budget between the smallest and the
// resident need, memory changes no bit of it. Every other one is trained in the same mode: modes
// know nothing of networks, and bit_identity_test.cpp has both.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "src/host/host_backend.h"
#include "src/plan/budget.h"
#include "tests/src/network_in_memory.h"
#include "um/host/host_device.h"

namespace spillway {
namespace {

using test::NetworkInMemory;

constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kClasses = 10;
constexpr const char* kBudget = "min+30%";
// Tests run beside each other, and threads of several teams wait for one another: two cores take
// 1.6 times as long with two threads a test.
constexpr std::size_t kThreads = 1;

// The smallest image that the network takes, or nearly, and a batch so large that the budget does
// not hold all.
struct Size {
  nets::Shape image;
  std::size_t batch;
};

constexpr nets::Shape photo(std::size_t side) {
  return {.channels = 3, .height = side, .width = side};
}

constexpr Size kUsualSize{photo(32), 2};

// By name, of networks that take others than the usual and of an example of each family, which
// stands for it. AlexNet and OverFeat are mostly weights. FCN pads its image by 100.
const std::map<std::string, Size>& sizes() {
  static const std::map<std::string, Size> all{
      {"alexnet", {photo(67), 16}},
      {"fcn8s", {{3, 2, 1}, 1}},
      {"googlenet with heads", {photo(80), 2}},
      {"inception-v3", {photo(75), 2}},
      {"inception-v3 with heads", {photo(299), 2}},
      {"inception-v4", {photo(75), 2}},
      {"lenet", {{1, 12, 12}, 32}},
      {"overfeat", {photo(71), 8}},
      {"resnet:2,3,1,2", {photo(32), 2}},
      {"vgg11", {photo(32), 4}},
      {"vgg16", {photo(32), 4}},
      {"vgg:1,1,2,3,1", {photo(32), 4}},
      {"bert-base", {nets::tokens(32), 4}},
      {"gpt:2,2,32,16", {nets::tokens(16), 8}},
      {"llama:2,4,2,32,48,16", {nets::tokens(16), 8}},
      {"vit-b16", {photo(96), 4}},
  };
  return all;
}

// Says whether the same function makes a network of fewer or narrower layers that is trained here
// (FCN-32s is FCN-8s without what that adds). The weights of some would take as much memory as
// machines have.
bool has_smaller_twin(const std::string& net) {
  static const std::set<std::string> all{"gpt2",        "gpt2-medium", "gpt2-large",  "gpt2-xl",
                                         "bert-large",  "vit-l16",     "vgg13",       "vgg19",
                                         "vgg101",      "resnet34",    "resnet101",   "resnet152",
                                         "densenet161", "densenet169", "densenet201", "fcn32s"};
  return all.contains(net);
}

struct Case {
  std::string net;
  bool has_heads = false;
  MemoryMode memory = MemoryMode::kManaged;
  [[nodiscard]] std::string name() const { return net + (has_heads ? " with heads" : ""); }
};

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Case& c, std::ostream* out) { *out << c.name(); }

// All of the catalogue but larger twins, with heads too where it has them, and what else there are
// sizes of.
std::vector<Case> every_network() {
  std::vector<Case> cases;
  for (const nets::CatalogueEntry& entry : nets::catalogue()) {
    if (has_smaller_twin(entry.name)) continue;
    cases.push_back({.net = entry.name});
    if (entry.build_with_heads) cases.push_back({.net = entry.name, .has_heads = true});
  }
  for (const auto& [name, size] : sizes()) {
    if (nets::find_in_families(name)) cases.push_back({.net = name});
  }
  for (std::size_t i = 1; i < cases.size(); i += 2) cases[i].memory = MemoryMode::kCopy;
  return cases;
}

// The blocks of state, as they lie in memory.
using StateBytes = std::vector<std::vector<std::byte>>;

// Those of `net`, one after the other: address and size.
std::vector<std::span<std::byte>> state_blocks(NetworkInMemory& net) {
  const Step& step = net.training_step();
  const std::vector<std::byte*> addresses = net.session().state().addresses(step);
  std::vector<std::span<std::byte>> blocks;
  for (const StateBlock& block : step.state) {
    for (const prefetch::DataId part : block.ids) {
      const auto id = static_cast<std::size_t>(part);
      blocks.emplace_back(addresses[id], step.graph.data[id].size.count());
    }
  }
  return blocks;
}

StateBytes state_of(NetworkInMemory& net) {
  StateBytes bytes;
  for (const auto block : state_blocks(net)) bytes.emplace_back(block.begin(), block.end());
  return bytes;
}

void set_state(NetworkInMemory& net, const StateBytes& bytes) {
  const std::vector<std::span<std::byte>> blocks = state_blocks(net);
  for (std::size_t i = 0; i < blocks.size(); ++i) std::ranges::copy(bytes[i], blocks[i].begin());
}

bool has_state(NetworkInMemory& net, const StateBytes& bytes) {
  return std::ranges::equal(state_blocks(net), bytes, [](const auto& block, const auto& wanted) {
    return std::memcmp(block.data(), wanted.data(), wanted.size()) == 0;
  });
}

// A resident training. Where it begins takes long to draw; where it ends may not change.
struct Trained {
  StateBytes first;
  std::vector<float> losses;
  StateBytes last;
};

class EveryNetwork : public testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] static Size size() {
    const auto own = sizes().find(GetParam().name());
    return own == sizes().end() ? kUsualSize : own->second;
  }

  [[nodiscard]] static NetworkInMemory in_memory(MemoryMode memory) {
    return {host::open_context(std::make_unique<um::HostDevice>(), kThreads),
            nets::build_network(GetParam().net, {.image = size().image,
                                                 .classes = kClasses,
                                                 .auxiliary_heads = GetParam().has_heads}),
            {.batch = size().batch, .convolution = ConvolutionAlgorithm::kDirect},
            memory,
            Budget::parse(kBudget)};
  }

  // The losses of two steps.
  [[nodiscard]] static std::vector<float> train(NetworkInMemory& net) {
    std::vector<float> losses;
    for (std::uint64_t step = 0; step < 2; ++step) {
      const Batch images = test::drawn_batch(net.network(), size().batch, step);
      const StepReport report = net.session().train(
          {.seed = kSeed, .step = step, .learning_rate = 0.001F, .batch = &images});
      losses.push_back(report.loss);
    }
    return losses;
  }
  // Leaves no memory behind.
  [[nodiscard]] static Trained train_resident() {
    NetworkInMemory net = in_memory(MemoryMode::kResident);
    net.session().state().initialise(kSeed);
    Trained trained{.first = state_of(net), .losses = train(net), .last = {}};
    trained.last = state_of(net);
    return trained;
  }
};

// A task that runs again stands behind later ones.
bool moves_or_runs_otherwise(const prefetch::Plan& plan) {
  return !plan.offloads.empty() || !std::ranges::is_sorted(plan.runs, {}, &prefetch::TaskRun::task);
}

TEST_P(EveryNetwork, TrainsToTheSameBitsWithinABudget) {
  const Trained resident = train_resident();
  for (const float loss : resident.losses) EXPECT_TRUE(std::isfinite(loss));
  EXPECT_NE(resident.losses[0], resident.losses[1]);
  NetworkInMemory little = in_memory(GetParam().memory);
  EXPECT_TRUE(moves_or_runs_otherwise(little.training_plan()));
  set_state(little, resident.first);
  EXPECT_EQ(train(little), resident.losses);
  EXPECT_TRUE(has_state(little, resident.last));
}

INSTANTIATE_TEST_SUITE_P(OfTheCatalogue, EveryNetwork, testing::ValuesIn(every_network()));

// Their members have no list; one for each has sizes.
TEST(EveryNetworkFamily, HasAMemberThatIsTrained) {
  for (const nets::NetworkFamily& family : nets::network_families()) {
    EXPECT_TRUE(std::ranges::any_of(sizes(), [&](const auto& size) {
      return size.first.starts_with(family.prefix);
    })) << family.prefix;
  }
}

}  // namespace
}  // namespace spillway
