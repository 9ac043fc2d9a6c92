#pragma once

#include <memory>
#include <utility>

#include "nets/builder.h"
#include "prefetch/files/machine.h"
#include "prefetch/profile.h"
#include "src/host/host_backend.h"
#include "src/ops/backend.h"
#include "src/plan/plan_question.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/train/session.h"
#include "um/host/host_device.h"

namespace spillway::test {

/// This machine with one kernel thread, whatever its processors.
[[nodiscard]] inline ExecutionContext small_context() {
  return host::open_context(std::make_unique<um::HostDevice>(), 1);
}

/// Convolution, batch norm with ReLU, and a linear layer on images of 1x8x8, for three classes.
[[nodiscard]] inline nets::Network small_network() {
  nets::Builder net{"small", {1, 8, 8}};
  nets::NodeId x = net.convolution("conv", net.input(), {.channels = 4, .kernel = nets::square(3)});
  x = net.relu("relu", net.batch_norm("norm", x));
  return net.build(net.linear("fc", x, {.features = 3}));
}

/// The same with 16 channels, and 16 x 6 x 6 x 80 weights of a linear layer more, 180 KiB: they are
/// worth a slice for each of several ranks.
[[nodiscard]] inline nets::Network wide_network() {
  nets::Builder net{"wide", {1, 8, 8}};
  nets::NodeId x =
      net.convolution("conv", net.input(), {.channels = 16, .kernel = nets::square(3)});
  x = net.relu("relu", net.batch_norm("norm", x));
  x = net.relu("relu1", net.linear("fc1", x, {.features = 80}));
  return net.build(net.linear("fc2", x, {.features = 3}));
}

/// As small_network(), with three linear layers: what it keeps between steps is most of what it
/// needs, and the second one is large enough to be updated in parts.
[[nodiscard]] inline nets::Network heavy_network() {
  nets::Builder net{"heavy", {1, 8, 8}};
  nets::NodeId x = net.convolution("conv", net.input(), {.channels = 4, .kernel = nets::square(3)});
  x = net.relu("relu", net.batch_norm("norm", x));
  x = net.relu("relu1", net.linear("fc1", x, {.features = 300}));
  x = net.relu("relu2", net.linear("fc2", x, {.features = 200}));
  return net.build(net.linear("fc3", x, {.features = 3}));
}

/// A convolution that Winograd's algorithm may compute, too.
[[nodiscard]] inline nets::Network network_with_a_choice() {
  nets::Builder net{"choice", {64, 14, 14}};
  const nets::NodeId x = net.convolution(
      "conv", net.input(), {.channels = 64, .kernel = nets::square(3), .padding = nets::square(1)});
  return net.build(net.linear("fc", x, {.features = 3}));
}

/// A linear layer on images of 1x8x8, for three classes: without statistics.
[[nodiscard]] inline nets::Network linear_network() {
  nets::Builder net{"plain", {1, 8, 8}};
  return net.build(net.linear("fc", net.input(), {.features = 3}));
}

/// A convolution without batch norm, and a linear layer.
[[nodiscard]] inline nets::Network network_without_norm() {
  nets::Builder net{"plain", {1, 8, 8}};
  nets::NodeId x = net.convolution("conv", net.input(), {.channels = 4, .kernel = nets::square(3)});
  return net.build(net.linear("fc", net.relu("relu", x), {.features = 3}));
}

/// A network in memory, all of it near, ready to train.
class SmallTraining {
 public:
  SmallTraining(const nets::Network& network, std::size_t batch)
      : workload{network, *context.backend, {.batch = batch}},
        plans{answer({.steps = workload,
                      .profile = prefetch::model_profile(workload.training().graph,
                                                         prefetch::find_machine("host")),
                      .budget = 2 * workload.need().peak_with_workspace,
                      .request = {.memory = MemoryMode::kResident}})
                  .plans},
        session{context, workload, plans, MemoryMode::kResident, {}} {}

  ExecutionContext context = small_context();
  Workload workload;
  Plans plans;
  Session session;
};

}  // namespace spillway::test
