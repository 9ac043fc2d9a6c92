#include <algorithm>
#include <array>

#include "src/host/kernels/kernels.h"

namespace spillway::host {
namespace {

using Tag = dnnl::memory::format_tag;

// Describes images as rows of a matrix, padding included, in memory order. oneDNN accepts images,
// too, but its kernels for them are several times slower.
LinearDescs describe(const Layout& layout, const LinearGeometry& geometry) {
  const std::size_t batch = geometry.x.batch;
  return {.x = layout.dense_desc({batch, layout.padded(geometry.x.image).elements()}),
          .weights = of_type(weights_desc(layout, geometry.parameters()), layout.element_type()),
          .bias = bias_desc(layout, geometry.parameters()),
          .y = layout.dense_desc({batch, layout.padded(geometry.features)})};
}

WeightedPrimitive weighted(const Layout& layout, const LinearGeometry& geometry,
                           Direction direction, const dnnl::primitive_desc& primitive) {
  return {.primitive = primitive,
          .direction = direction,
          .block_weights = weights_desc(layout, geometry.parameters()),
          .parts = parts_of(layout, geometry.parameters())};
}

// Returns the inputs, counted within an image, with weights in the operation's part.
FloatRange inputs_of(const Layout& layout, const LinearBackwardWeights& operation) {
  const LinearGeometry& geometry = operation.geometry;
  const FloatRange range = cuts_of(layout, geometry.parameters()).range(operation.part);
  const std::size_t outputs = layout.padded(geometry.features);
  const std::size_t inputs = layout.padded(geometry.x.image).elements();
  return {.begin = range.begin / outputs, .end = std::min(range.end / outputs, inputs)};
}

// Returns the two parts of a block relative to a range of it; the last range has the second part.
ParameterParts parts_within(const ParameterParts& whole, const FloatRange& range) {
  if (range.end < whole.total) {
    return {
        .first = range.count(), .second_begin = range.count(), .second = 0, .total = range.count()};
  }
  return {.first = whole.first - range.begin,
          .second_begin = whole.second_begin - range.begin,
          .second = whole.second,
          .total = range.count()};
}

// Bytes of a copy of the part's inputs of all images: oneDNN 2.6 only has its reference
// implementation for rows with gaps.
um::Bytes copied_bytes(const Layout& layout, const LinearBackwardWeights& operation) {
  if (operation.part.count == 1) return {};
  constexpr um::Bytes kAlignment{64};
  const Desc copied =
      layout.dense_desc({operation.geometry.x.batch, inputs_of(layout, operation).count()});
  return um::round_up(um::Bytes{copied.get_size()}, kAlignment);
}

// Computes the gradient of one of several parts.
class PartKernel final : public HostKernel {
 public:
  // `dense` reads only the part's inputs.
  PartKernel(const Machine& machine, const LinearBackwardWeights& operation,
             std::unique_ptr<Kernel> dense)
      : HostKernel{machine, 3},
        layout_{machine.layout},
        batch_{operation.geometry.x.batch},
        row_{machine.layout.padded(operation.geometry.x.image).elements()},
        inputs_{inputs_of(machine.layout, operation)},
        copied_{copied_bytes(machine.layout, operation)},
        dense_{std::move(dense)} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of<LinearBackwardWeights>(arguments.operands);
    with_elements(layout_, [&](auto elements) {
      const auto* const x = elements(operands.in.x);
      auto* const copy = elements(arguments.workspace);
#pragma omp parallel for schedule(static)
      for (std::size_t n = 0; n < batch_; ++n) {
        std::copy_n(x + n * row_ + inputs_.begin, inputs_.count(), copy + n * inputs_.count());
      }
    });
    const std::array<std::byte*, 3> own{arguments.workspace, operands.in.dy,
                                        operands.out.dparameters};
    KernelArguments inner = arguments;
    inner.operands = own;
    inner.workspace = arguments.workspace + copied_.count();
    dense_->run(inner);
  }

  Layout layout_;
  std::size_t batch_;
  std::size_t row_;
  FloatRange inputs_;
  um::Bytes copied_;
  std::unique_ptr<Kernel> dense_;
};

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
  const LinearGeometry& geometry = operation.geometry;
  LinearDescs descs = describe(machine.layout, geometry);
  ParameterParts parts = parts_of(machine.layout, geometry.parameters());
  if (operation.part.count > 1) {
    const std::size_t inputs = inputs_of(machine.layout, operation).count();
    descs.x = machine.layout.dense_desc({geometry.x.batch, inputs});
    descs.weights = of_type(float_desc({machine.layout.padded(geometry.features), inputs}, Tag::ba),
                            machine.layout.element_type());
    if (!operation.part.is_last()) descs.bias = {};
    parts =
        parts_within(parts, cuts_of(machine.layout, geometry.parameters()).range(operation.part));
  }
  const auto forward = linear_forward(machine.engine, descs, /*relu=*/false);
  descs.weights = of_type(descs.weights, dnnl::memory::data_type::f32);  // the weights' gradient
  return {.primitive = linear_backward_weights(machine.engine, descs, forward),
          .direction = Direction::kBackwardWeights,
          .block_weights = descs.weights,
          .parts = parts};
}

um::Bytes workspace_of(const Machine& machine, const LinearBackwardWeights& operation,
                       const WeightedPrimitive& weighted) {
  return copied_bytes(machine.layout, operation) + workspace_of(machine, weighted);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LinearBackwardWeights& operation,
                                    const WeightedPrimitive& weighted) {
  auto kernel = make_kernel(machine, weighted);
  if (operation.part.count == 1) return kernel;
  return std::make_unique<PartKernel>(machine, operation, std::move(kernel));
}

}  // namespace spillway::host
