#include "tests/golden/networks.h"

#include <string>

#include "nets/builder.h"
#include "um/error.h"

namespace spillway::test {
namespace {

using nets::NodeId;
using nets::square;

nets::Network chain() {
  nets::Builder net{"chain", {2, 12, 12}};
  NodeId x = net.convolution("conv1", net.input(),
                             {.channels = 6, .kernel = square(5), .padding = square(2)});
  x = net.pool("pool1", net.relu("relu1", x), {});
  x = net.dropout("dropout1", x, {.probability = 0});
  x = net.convolution("conv2", x, {.channels = 7, .kernel = {3, 2}, .padding = {1, 0}});
  x = net.pool("pool2", x,
               {.kind = nets::PoolKind::kAverage, .kernel = square(3), .padding = square(1)});
  x = net.flatten("flat", net.relu("relu2", x));
  x = net.dropout("dropout2", x, {.probability = 0});
  x = net.relu("relu3", net.linear("fc1", x, {.features = 10}));
  return net.build(net.linear("fc2", x, {.features = 5, .bias = false}));
}

// A convolution to 16 channels that keeps the size but for the stride, and its batch norm.
NodeId unit(nets::Builder& net, const std::string& name, NodeId x, std::size_t kernel,
            std::size_t stride = 1) {
  x = net.convolution(name, x,
                      {.channels = 16,
                       .kernel = square(kernel),
                       .stride = square(stride),
                       .padding = square(kernel / 2),
                       .bias = false});
  return net.batch_norm(name + ".norm", x);
}

nets::Network residual() {
  nets::Builder net{"residual", {3, 12, 12}};
  NodeId x = net.relu("stem.relu", unit(net, "stem", net.input(), 3));
  x = net.pool("pool", x, {.kernel = square(3), .padding = square(1)});
  NodeId y = net.relu("block1.relu1", unit(net, "block1.conv1", x, 3));
  y = unit(net, "block1.conv2", y, 3);
  x = net.relu("block1.relu2", net.sum("block1.sum", y, x));
  y = net.relu("block2.relu1", unit(net, "block2.conv1", x, 3, 2));
  y = unit(net, "block2.conv2", y, 3);
  x = net.sum("block2.sum", y, unit(net, "block2.project", x, 1, 2));
  x = net.global_average_pool("mean", net.relu("block2.relu2", x));
  return net.build(net.linear("fc", x, {.features = 5}));
}

// The first half: an image to four channels of the same size.
NodeId add_fan(nets::Builder& net) {
  NodeId x = net.convolution("conv", net.input(),
                             {.channels = 4, .kernel = square(3), .padding = square(1)});
  const NodeId y = net.sum("sum1", net.relu("relu1", x), net.batch_norm("norm", x));
  x = net.pool("average", x,
               {.kind = nets::PoolKind::kAverage,
                .kernel = square(3),
                .stride = square(1),
                .padding = square(1)});
  x = net.relu("relu2", net.sum("sum2", y, x));
  const NodeId side = net.convolution("side", x, {.channels = 4, .bias = false});
  const NodeId twice = net.sum("twice", x, x);
  return net.sum("sum4", net.sum("sum3", twice, net.relu("relu3", side)), x);
}

nets::Network branches() {
  nets::Builder net{"branches", {3, 8, 8}};
  NodeId x = add_fan(net);
  const NodeId max = net.pool("most", x, {});
  x = net.convolution("shrink", x,
                      {.channels = 4, .kernel = square(2), .stride = square(2), .bias = false});
  x = net.sum("sum5", max, x);
  const NodeId same = net.dropout("dropout", x, {.probability = 0});
  x = net.sum("sum6", net.relu("relu4", same), x);
  x = net.batch_norm("even", x);
  const NodeId flat = net.relu("relu5", net.flatten("flat", x));
  const NodeId y = net.sum("sum7", net.linear("fc1", flat, {.features = 4}),
                           net.linear("fc2", flat, {.features = 4, .bias = false}));
  const NodeId mean = net.global_average_pool("mean", x);
  return net.build(net.sum("sum8", y, net.linear("fc3", mean, {.features = 4})));
}

// The image at half its size, by norms and joins, to 31 channels of 6x6.
NodeId add_joins(nets::Builder& net) {
  NodeId x = net.convolution("stem", net.input(),
                             {.channels = 7, .kernel = square(3), .padding = square(1)});
  x = net.local_response_norm("local1", net.relu("relu1", x), {.alpha = 2});
  x = net.pool("pool", x, {.kernel = square(3), .rounds_up = true});
  NodeId a = net.convolution("across", x, {.channels = 5, .kernel = {1, 7}, .padding = {0, 3}});
  a = net.relu("relu2", a);
  const NodeId norm = net.batch_norm("dense.norm", net.concat("dense", {x, a}));
  const NodeId b =
      net.convolution("down", net.relu("relu3", norm),
                      {.channels = 4, .kernel = {7, 1}, .padding = {3, 0}, .bias = false});
  const NodeId mean = net.pool("mean", x,
                               {.kind = nets::PoolKind::kAverage,
                                .kernel = square(3),
                                .stride = square(1),
                                .padding = square(1),
                                .counts_padding = true});
  const NodeId small = net.pool("small", net.input(), {.kind = nets::PoolKind::kAverage});
  return net.concat("all", {x, a, b, mean, a, small});
}

nets::Network joined() {
  nets::Builder net{"joined", {3, 12, 12}};
  const NodeId all = add_joins(net);
  const NodeId local =
      net.local_response_norm("local2", all, {.size = 3, .alpha = 1, .beta = 0.5F, .k = 0.5F});
  const NodeId wide =
      net.convolution("wide", all, {.channels = 6, .kernel = square(5), .padding = square(2)});
  const NodeId y = net.relu("relu4", net.concat("last", {local, wide}));
  return net.build(net.linear("fc", net.global_average_pool("average", y), {.features = 5}));
}

}  // namespace

nets::Network golden_network(std::string_view name) {
  if (name == "chain") return chain();
  if (name == "residual") return residual();
  if (name == "joined") return joined();
  um::expects(name == "branches", "a golden file of this name");
  return branches();
}

}  // namespace spillway::test
