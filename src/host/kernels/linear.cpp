#include "src/host/kernels/kernels.h"

namespace spillway::host {
namespace {

// Images are rows of a matrix, padding included, in the order in which they lie in memory. oneDNN
// would take them as images too, but its kernels for that are several times slower.
LinearDescs describe(const Layout& layout, const LinearGeometry& geometry) {
  using Tag = dnnl::memory::format_tag;
  const std::size_t batch = geometry.x.batch;
  return {.x = float_desc({batch, layout.padded(geometry.x.image).elements()}, Tag::ab),
          .weights = weights_desc(layout, geometry.parameters()),
          .bias = bias_desc(layout, geometry.parameters()),
          .y = float_desc({batch, layout.padded(geometry.features)}, Tag::ab)};
}

WeightedPrimitive weighted(const Layout& layout, const LinearGeometry& geometry,
                           Direction direction, const dnnl::primitive_desc& primitive) {
  return {.primitive = primitive,
          .direction = direction,
          .block_weights = weights_desc(layout, geometry.parameters()),
          .parts = parts_of(layout, geometry.parameters())};
}

}  // namespace

WeightedPrimitive make_primitive(const Machine& machine, const LinearForward& operation) {
  const LinearDescs descs = describe(machine.layout, operation.geometry);
  return weighted(machine.layout, operation.geometry, Direction::kForward,
                  linear_forward(machine.engine, descs, operation.relu));
}

WeightedPrimitive make_primitive(const Machine& machine, const LinearBackwardData& operation) {
  const LinearDescs descs = describe(machine.layout, operation.geometry);
  const auto forward = linear_forward(machine.engine, descs, /*relu=*/false);
  return weighted(machine.layout, operation.geometry, Direction::kBackwardData,
                  linear_backward_data(machine.engine, descs, forward));
}

WeightedPrimitive make_primitive(const Machine& machine, const LinearBackwardWeights& operation) {
  const LinearDescs descs = describe(machine.layout, operation.geometry);
  const auto forward = linear_forward(machine.engine, descs, /*relu=*/false);
  return weighted(machine.layout, operation.geometry, Direction::kBackwardWeights,
                  linear_backward_weights(machine.engine, descs, forward));
}

}  // namespace spillway::host
