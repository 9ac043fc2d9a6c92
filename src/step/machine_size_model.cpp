#include "src/step/machine_size_model.h"

#include <optional>
#include <type_traits>
#include <variant>

namespace spillway {
namespace {

// Of the convolution that an operation belongs to, or of its adjoint.
struct GeometryOf {
  using Result = std::optional<ConvolutionGeometry>;

  Result operator()(const ConvolutionForward& op) const { return op.geometry; }
  Result operator()(const ConvolutionBackwardData& op) const { return op.geometry; }
  Result operator()(const ConvolutionBackwardWeights& op) const { return op.geometry; }
  Result operator()(const TransposedConvolutionForward& op) const { return op.geometry.adjoint(); }
  Result operator()(const TransposedConvolutionBackwardData& op) const {
    return op.geometry.adjoint();
  }
  Result operator()(const TransposedConvolutionBackwardWeights& op) const {
    return op.geometry.adjoint();
  }
  template <class Op>
  Result operator()(const Op& /*op*/) const {
    return std::nullopt;
  }
};

}  // namespace

um::Bytes MachineSizeModel::tensor_bytes(const TensorShape& shape) const {
  return float_bytes(shape.elements());
}

um::Bytes MachineSizeModel::parameter_bytes(const ParameterSpec& spec) const {
  return float_bytes(element_count(spec));
}

um::Bytes MachineSizeModel::saved_bytes(const Operation& operation) const {
  if (const auto* norm = std::get_if<BatchNormForward>(&operation); norm != nullptr && norm->relu) {
    return um::Bytes{(norm->x.elements() + 7) / 8};  // one bit an element
  }
  if (const auto* pool = std::get_if<PoolForward>(&operation);
      pool != nullptr && pool->pool.kind == nets::PoolKind::kMax) {
    return um::Bytes{pool->y.elements()};  // one byte an output
  }
  return {};
}

std::vector<AlgorithmInfo> MachineSizeModel::algorithms(const Operation& operation) const {
  const std::optional<ConvolutionGeometry> geometry = std::visit(GeometryOf{}, operation);
  if (!geometry) return {{.name = "default", .workspace = {}}};
  std::vector<AlgorithmInfo> all{{.name = "direct", .workspace = {}}};
  if (geometry->kernel == nets::square(3) && geometry->stride == nets::square(1) &&
      geometry->dilation == nets::square(1) && geometry->groups == 1) {
    const std::size_t touched = geometry->x.elements() + geometry->y.elements();
    all.push_back({.name = "winograd", .workspace = float_bytes(touched + touched / 8)});
  }
  return all;
}

}  // namespace spillway
