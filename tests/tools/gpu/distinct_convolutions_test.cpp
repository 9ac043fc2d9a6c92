#include "tools/gpu/distinct_convolutions.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "nets/builder.h"
#include "src/host/host_backend.h"

namespace spillway::gpu {
namespace {

using Names = std::vector<std::vector<std::string>>;

// Convolutions of 4 channels that keep 6x6: a, then two alike, then one with a ReLU.
Step step_of_four() {
  const nets::Convolution layer{.channels = 4, .kernel = nets::square(3), .padding = {1, 1}};
  nets::Builder net{"four", {4, 6, 6}};
  nets::NodeId x = net.convolution("a", net.input(), layer);
  x = net.convolution("b", x, layer);
  x = net.convolution("c", x, layer);
  x = net.relu("relu", net.convolution("d", x, layer));
  return make_training_step(net.build(net.linear("fc", x, {.features = 3})), host::HostBackend{1},
                            {.batch = 2});
}

TEST(DistinctConvolutions, AreNamedByAllTasksThatAreTheSame) {
  // Nobody wants the gradient of the images, so a has no backward_data. The ReLU is forward's only.
  EXPECT_EQ(distinct_convolutions(step_of_four()).tasks,
            (Names{{"a.forward", "b.forward", "c.forward"},
                   {"d.forward"},
                   {"d.backward_weights", "c.backward_weights", "b.backward_weights",
                    "a.backward_weights"},
                   {"d.backward_data", "c.backward_data", "b.backward_data"}}));
}

TEST(DistinctConvolutions, TellGeometriesApart) {
  nets::Builder net{"two", {4, 6, 6}};
  nets::NodeId x =
      net.convolution("a", net.input(), {.channels = 4, .kernel = {3, 1}, .padding = {1, 0}});
  x = net.convolution("b", x, {.channels = 4, .kernel = {1, 3}, .padding = {0, 1}});
  const Step step = make_training_step(net.build(net.linear("fc", x, {.features = 3})),
                                       host::HostBackend{1}, {.batch = 2});
  EXPECT_EQ(distinct_convolutions(step).tasks, (Names{{"a.forward"},
                                                      {"b.forward"},
                                                      {"b.backward_weights"},
                                                      {"b.backward_data"},
                                                      {"a.backward_weights"}}));
}

TEST(DistinctConvolutions, KeepTheirLaunchesAndBlocks) {
  const Step whole = step_of_four();
  const Step step = distinct_convolutions(whole).step;
  ASSERT_EQ(step.graph.tasks.size(), 4U);
  ASSERT_EQ(step.launches.size(), 4U);
  EXPECT_EQ(step.graph.tasks[1].name, "d.forward");
  EXPECT_TRUE(std::get<ConvolutionForward>(step.launches[1].operation).relu);
  for (const prefetch::DataId id : step.launches[1].operands) {
    EXPECT_EQ(step.graph[id].name, whole.graph[id].name);
  }
}

TEST(DistinctConvolutions, AreNoneInANetworkWithoutThem) {
  nets::Builder net{"none", {4, 6, 6}};
  const Step step = make_training_step(net.build(net.linear("fc", net.input(), {.features = 3})),
                                       host::HostBackend{1}, {.batch = 2});
  EXPECT_TRUE(distinct_convolutions(step).tasks.empty());
}

}  // namespace
}  // namespace spillway::gpu
