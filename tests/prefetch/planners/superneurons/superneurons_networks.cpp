#include "tests/prefetch/planners/superneurons/superneurons_networks.h"

#include <utility>

namespace spillway::prefetch::testing {
namespace {

std::uint64_t slide(std::uint64_t extent, SuperNeuronsStep::Window window) {
  return (extent + 2 * window.padding - window.kernel) / window.stride + 1;
}

std::uint32_t key(DataId id) { return static_cast<std::uint32_t>(id); }

using Tensor = SuperNeuronsStep::Tensor;

Tensor bottleneck(SuperNeuronsStep& step, Tensor x, std::uint64_t width, std::uint64_t stride) {
  const Tensor fork = step.fork(x);
  Tensor y = step.relu(step.batch_norm(step.convolution(fork, width, {.kernel = 1})));
  y = step.convolution(y, width, {.kernel = 3, .stride = stride, .padding = 1});
  y = step.relu(step.batch_norm(y));
  y = step.batch_norm(step.convolution(y, 4 * width, {.kernel = 1}));
  Tensor skip = fork;
  if (fork.channels != y.channels) {
    skip = step.convolution(fork, 4 * width, {.kernel = 1, .stride = stride});
    skip = step.batch_norm(skip);
  }
  return step.relu(step.join(y, skip));
}

}  // namespace

std::string SuperNeuronsStep::next_name(const std::string& kind) {
  return kind + std::to_string(++counts_[kind]);
}

DataId SuperNeuronsStep::new_block(const std::string& name, std::uint64_t channels,
                                   std::uint64_t extent) {
  const um::Bytes size{batch_ * channels * extent * extent * sizeof(float)};
  return graph_.add(DataBlock{.name = name, .size = size});
}

// A convolution also reads weights, which identify its backward tasks.
Tensor SuperNeuronsStep::add(const Layer& layer, Tensor x, Tensor y) {
  const std::string name = next_name(layer.kind);
  y.block = new_block(name + ".y", y.channels, y.extent);
  std::vector<DataId> weights;
  if (layer.task == TaskKind::kConvolution) {
    weights = {graph_.add(DataBlock{.name = name, .size = {}, .kind = DataKind::kState})};
  }
  Task forward{.name = name, .kind = layer.task, .reads = weights, .writes = {y.block}};
  forward.is_recomputable = layer.task != TaskKind::kOther;
  const bool has_input = graph_[x.block].size > um::Bytes{};  // the images do not count
  if (has_input) forward.reads.push_back(x.block);
  graph_.add(forward);
  backward_.emplace_back([=, this] {
    const DataId dy = gradients_[key(y.block)].at(0);
    Task backward{.name = name + ".backward", .phase = Phase::kBackward, .reads = weights};
    backward.reads.push_back(dy);
    if (layer.saves != Saves::kNeither && has_input) backward.reads.push_back(x.block);
    if (layer.saves == Saves::kInputAndOutput && dy != y.block) backward.reads.push_back(y.block);
    const DataId dx = layer.in_place ? dy : new_block(name + ".dx", x.channels, x.extent);
    backward.writes = {dx};
    gradients_[key(x.block)].push_back(dx);
    graph_.add(backward);
  });
  return y;
}

Tensor SuperNeuronsStep::first_convolution(std::uint64_t image_extent, std::uint64_t channels,
                                           Window window) {
  const DataId images = graph_.add(DataBlock{.name = "images", .size = {}});
  return convolution({.channels = 3, .extent = image_extent, .block = images}, channels, window);
}

Tensor SuperNeuronsStep::convolution(Tensor x, std::uint64_t channels, Window window) {
  return add(kConvolution, x,
             {.channels = channels, .extent = slide(x.extent, window), .block = {}});
}

Tensor SuperNeuronsStep::pool(Tensor x, Window window) {
  return add(kPool, x, {.channels = x.channels, .extent = slide(x.extent, window), .block = {}});
}

// The output is already the gradient, except for the labels.
Tensor SuperNeuronsStep::softmax(Tensor x) {
  const Tensor y = add(kSoftmax, x, x);
  gradients_[key(y.block)] = {y.block};
  return y;
}

// The backward pass adds the gradients of both branches, in place of the second.
Tensor SuperNeuronsStep::fork(Tensor x) {
  const std::string name = next_name("fork");
  const Tensor y{.channels = x.channels,
                 .extent = x.extent,
                 .block = new_block(name + ".y", x.channels, x.extent)};
  graph_.add(Task{.name = name, .kind = TaskKind::kJoin, .reads = {x.block}, .writes = {y.block}});
  backward_.emplace_back([=, this] {
    const std::vector<DataId> dy = gradients_[key(y.block)];
    graph_.add(Task{
        .name = name + ".backward", .phase = Phase::kBackward, .reads = dy, .writes = {dy.back()}});
    gradients_[key(x.block)] = {dy.back()};
  });
  return y;
}

// In the backward pass both branches take the same gradient.
Tensor SuperNeuronsStep::join(Tensor x, Tensor y) {
  const std::string name = next_name("join");
  const Tensor sum{.channels = x.channels,
                   .extent = x.extent,
                   .block = new_block(name + ".y", x.channels, x.extent)};
  graph_.add(Task{
      .name = name, .kind = TaskKind::kJoin, .reads = {x.block, y.block}, .writes = {sum.block}});
  backward_.emplace_back([=, this] {
    const DataId dy = gradients_[key(sum.block)].at(0);
    gradients_[key(x.block)].push_back(dy);
    gradients_[key(y.block)].push_back(dy);
  });
  return sum;
}

TaskGraph SuperNeuronsStep::finish() {
  for (auto layer = backward_.rbegin(); layer != backward_.rend(); ++layer) (*layer)();
  return std::move(graph_);
}

TaskGraph superneurons_alexnet(std::uint64_t batch) {
  constexpr SuperNeuronsStep::Window kPool{.kernel = 3, .stride = 2};
  constexpr SuperNeuronsStep::Window kThree{.kernel = 3, .padding = 1};
  SuperNeuronsStep step{batch};
  Tensor x = step.first_convolution(227, 96, {.kernel = 11, .stride = 4});
  x = step.pool(step.lrn(step.relu(x)), kPool);
  x = step.convolution(x, 256, {.kernel = 5, .padding = 2});
  x = step.pool(step.lrn(step.relu(x)), kPool);
  x = step.relu(step.convolution(x, 384, kThree));
  x = step.relu(step.convolution(x, 384, kThree));
  x = step.pool(step.relu(step.convolution(x, 256, kThree)), kPool);
  x = step.dropout(step.relu(step.linear(x, 4096)));
  x = step.dropout(step.relu(step.linear(x, 4096)));
  step.softmax(step.linear(x, 1000));
  return step.finish();
}

TaskGraph superneurons_resnet(const std::vector<int>& blocks, std::uint64_t batch) {
  SuperNeuronsStep step{batch};
  Tensor x = step.first_convolution(224, 64, {.kernel = 7, .stride = 2, .padding = 3});
  x = step.pool(step.relu(step.batch_norm(x)), {.kernel = 3, .stride = 2, .padding = 1});
  std::uint64_t width = 64;
  for (const int count : blocks) {
    for (int block = 0; block < count; ++block) {
      x = bottleneck(step, x, width, block == 0 && width > 64 ? 2 : 1);
    }
    width *= 2;
  }
  x = step.pool(x, {.kernel = x.extent, .stride = 1});
  step.softmax(step.linear(x, 1000));
  return step.finish();
}

}  // namespace spillway::prefetch::testing
