#include "src/program/machine_size_model.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <variant>

namespace spillway {
namespace {

// Returns the geometry of the convolution that an operation belongs to, or of its adjoint.
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

// Returns how many floats are in the logits that a loss over a vocabulary has at once.
struct LogitFloats {
  using Result = std::optional<std::size_t>;

  Result operator()(const VocabularyLossTrain& op) const { return of(op.geometry); }
  Result operator()(const VocabularyLossEvaluate& op) const { return of(op.geometry); }
  template <class Op>
  Result operator()(const Op& /*op*/) const {
    return std::nullopt;
  }

  static std::size_t of(const VocabularyGeometry& geometry) {
    const std::size_t most = std::max(kVocabularyChunk, kLeastGpuTokens * geometry.vocabulary);
    return std::min(rows_of(geometry.x).batch * geometry.vocabulary, most);
  }
};

// Returns the bytes of the copies in bfloat16 from which kernels read weights and biases.
um::Bytes copy_bytes(const ParameterSpec& spec) {
  // Positions are added, not multiplied with.
  if (!has_weights(spec) || std::holds_alternative<PositionParameters>(spec)) return {};
  return um::Bytes{float_bytes(element_count(spec)).count() / 2};
}

um::Bytes copy_share(const ParameterSpec& spec, const ParameterPart& part) {
  return um::Bytes{copy_bytes(spec).count() / part.count};
}

// Linear layers are cut between inputs, which have a weight for each output.
ParameterCuts cuts_of(const ParameterSpec& spec) {
  const std::size_t total = element_count(spec);
  const auto* const linear = std::get_if<LinearParameters>(&spec);
  if (linear == nullptr) return {total, total, total};
  constexpr std::size_t kInputs = 16;
  return {linear->in.elements() * linear->out, total, kInputs * linear->out};
}

// Nothing where an operation is about activations, which are as narrow as the precision says.
struct FloatsOf {
  using Result = std::optional<um::Bytes>;

  Result operator()(const UpdateParameters& op) const {
    return op.cost().traffic + copy_share(op.parameters, op.part);
  }
  Result operator()(const AverageParameters& op) const { return op.cost().traffic; }
  Result operator()(const TakeParameters& op) const {
    return op.cost().traffic + copy_share(op.parameters, op.part);
  }
  Result operator()(const AccumulateGradients& op) const { return op.cost().traffic; }
  Result operator()(const AddSquares& op) const { return op.cost().traffic; }
  Result operator()(const ClipGradient& op) const { return op.cost().traffic; }
  template <class Op>
  Result operator()(const Op& /*op*/) const {
    return std::nullopt;
  }
};

}  // namespace

um::Bytes MachineSizeModel::tensor_bytes(const TensorShape& shape) const {
  const um::Bytes floats = float_bytes(shape.elements());
  const bool is_halved = precision_ == Precision::kBf16 && shape.image.form != nets::Form::kTokens;
  return is_halved ? um::Bytes{floats.count() / 2} : floats;
}

um::Bytes MachineSizeModel::parameter_bytes(const ParameterSpec& spec) const {
  const um::Bytes floats = float_bytes(element_count(spec));
  return floats + (precision_ == Precision::kBf16 ? copy_bytes(spec) : um::Bytes{});
}

std::size_t MachineSizeModel::parameter_parts(const ParameterSpec& spec, um::Bytes most) const {
  return cuts_of(spec).parts(most);
}

um::Bytes MachineSizeModel::parameter_part_bytes(const ParameterSpec& spec,
                                                 const ParameterPart& part) const {
  if (part.count == 1) return parameter_bytes(spec);
  return float_bytes(cuts_of(spec).range(part).count());
}

um::Bytes MachineSizeModel::saved_bytes(const Operation& operation) const {
  if (const auto* norm = std::get_if<BatchNormForward>(&operation); norm != nullptr && norm->relu) {
    return um::Bytes{(norm->x.elements() + 7) / 8};  // one bit an element
  }
  if (const auto* add = std::get_if<AddForward>(&operation); add != nullptr && add->saves_mask) {
    return um::Bytes{(add->x.elements() + 7) / 8};
  }
  if (const auto* norm = std::get_if<RowNormForward>(&operation); norm != nullptr) {
    return float_bytes(rows_of(norm->x).batch * (norm->is_centred ? 2 : 1));
  }
  if (const auto* attention = std::get_if<AttentionForward>(&operation); attention != nullptr) {
    return float_bytes(attention->geometry.saved_count());
  }
  if (const auto* pool = std::get_if<PoolForward>(&operation);
      pool != nullptr && pool->pool.kind == nets::PoolKind::kMax) {
    return um::Bytes{pool->y.elements()};  // one byte an output
  }
  return {};
}

std::vector<AlgorithmInfo> MachineSizeModel::algorithms(const Operation& operation) const {
  if (const std::optional<std::size_t> logits = std::visit(LogitFloats{}, operation)) {
    return {{.name = "default", .workspace = float_bytes(*logits)}};
  }
  const std::optional<ConvolutionGeometry> geometry = std::visit(GeometryOf{}, operation);
  if (!geometry) return {{.name = "default", .workspace = {}}};
  std::vector<AlgorithmInfo> all{{.name = "direct", .workspace = {}}};
  if (precision_ != Precision::kFp32) return all;
  if (geometry->kernel == nets::square(3) && geometry->stride == nets::square(1) &&
      geometry->dilation == nets::square(1) && geometry->groups == 1) {
    const std::size_t touched = geometry->x.elements() + geometry->y.elements();
    all.push_back({.name = "winograd", .workspace = float_bytes(touched + touched / 8)});
  }
  return all;
}

um::Bytes MachineSizeModel::traffic(const Operation& operation) const {
  const um::Bytes floats = SizeModel::traffic(operation);
  if (precision_ != Precision::kBf16) return floats;
  return std::visit(FloatsOf{}, operation).value_or(um::Bytes{floats.count() / 2});
}

}  // namespace spillway
