#include "src/ops/parameter.h"

#include <utility>

namespace spillway {
namespace {

struct Count {
  std::size_t operator()(const ConvolutionParameters& p) const {
    return p.out * (p.in / p.groups) * p.kernel.height * p.kernel.width + (p.bias ? p.out : 0);
  }
  std::size_t operator()(const TransposedConvolutionParameters& p) const {
    return (*this)(p.adjoint()) + (p.bias ? p.out : 0);
  }
  std::size_t operator()(const LinearParameters& p) const {
    return p.out * p.in.elements() + (p.bias ? p.out : 0);
  }
  std::size_t operator()(const BatchNormParameters& p) const { return 2 * p.channels; }
  std::size_t operator()(const BatchNormStatistics& p) const { return 2 * p.channels; }
  std::size_t operator()(const RowNormParameters& p) const {
    return p.bias ? 2 * p.channels : p.channels;
  }
  std::size_t operator()(const EmbeddingParameters& p) const { return p.vocabulary * p.features; }
  std::size_t operator()(const PositionParameters& p) const {
    return (p.positions + p.segments) * p.features;
  }
  std::size_t operator()(const ClassTokenParameters& p) const { return p.features; }
  std::size_t operator()(const BiasParameters& p) const { return p.count; }
};

struct Arrays {
  using Result = std::vector<ParameterArray>;

  Result operator()(const ConvolutionParameters& p) const {
    return with_bias(p, {p.out, p.in / p.groups, p.kernel.height, p.kernel.width});
  }
  Result operator()(const TransposedConvolutionParameters& p) const {
    return with_bias(p, {p.in, p.out / p.groups, p.kernel.height, p.kernel.width});
  }
  Result operator()(const LinearParameters& p) const {
    return with_bias(p, {p.out, p.in.elements()});
  }
  Result operator()(const BatchNormParameters& p) const {
    return {{".weight", {p.channels}}, {".bias", {p.channels}}};
  }
  Result operator()(const BatchNormStatistics& p) const {  // of a block named "bn1.running"
    return {{"_mean", {p.channels}}, {"_var", {p.channels}}};
  }

  Result operator()(const RowNormParameters& p) const {
    Result arrays{{".weight", {p.channels}}};
    if (p.bias) arrays.push_back({".bias", {p.channels}});
    return arrays;
  }
  Result operator()(const EmbeddingParameters& p) const {
    return {{".weight", {p.vocabulary, p.features}}};
  }
  Result operator()(const PositionParameters& p) const {
    Result arrays{{".weight", {p.positions, p.features}}};
    if (p.segments > 0) arrays.push_back({".segments", {p.segments, p.features}});
    return arrays;
  }
  Result operator()(const ClassTokenParameters& p) const { return {{".token", {p.features}}}; }
  Result operator()(const BiasParameters& p) const { return {{".bias", {p.count}}}; }

  template <class Parameters>
  static Result with_bias(const Parameters& p, std::vector<std::size_t> weight) {
    Result arrays{{".weight", std::move(weight)}};
    if (p.bias) arrays.push_back({".bias", {p.out}});
    return arrays;
  }
};

}  // namespace

std::size_t element_count(const ParameterSpec& spec) { return std::visit(Count{}, spec); }

bool has_weights(const ParameterSpec& spec) {
  struct HasWeights {
    bool operator()(const ConvolutionParameters& /*p*/) const { return true; }
    bool operator()(const TransposedConvolutionParameters& /*p*/) const { return true; }
    bool operator()(const LinearParameters& /*p*/) const { return true; }
    bool operator()(const BatchNormParameters& /*p*/) const { return false; }
    bool operator()(const BatchNormStatistics& /*p*/) const { return false; }
    bool operator()(const RowNormParameters& /*p*/) const { return false; }
    bool operator()(const EmbeddingParameters& /*p*/) const { return true; }
    bool operator()(const PositionParameters& /*p*/) const { return true; }
    bool operator()(const ClassTokenParameters& /*p*/) const { return false; }
    bool operator()(const BiasParameters& /*p*/) const { return false; }
  };
  return std::visit(HasWeights{}, spec);
}

std::vector<ParameterArray> arrays_of(const ParameterSpec& spec) {
  return std::visit(Arrays{}, spec);
}

}  // namespace spillway
