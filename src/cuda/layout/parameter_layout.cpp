#include "src/cuda/layout/parameter_layout.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "src/cuda/layout/layout.h"
#include "src/ops/tensor.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

constexpr um::Bytes kAlignment{256};
constexpr std::size_t kBfloat16 = sizeof(Bfloat16);

std::size_t weights_of(const ConvolutionParameters& spec) {
  return Layout::padded(spec.out) * spec.kernel.height * spec.kernel.width * filter_channels(spec);
}
std::size_t weights_of(const TransposedConvolutionParameters& spec) {
  return weights_of(spec.adjoint());
}
std::size_t weights_of(const LinearParameters& spec) {
  return Layout::padded(spec.out) * Layout::padded(spec.in).elements();
}
// The rows of a vocabulary are padded, too, since they are columns of logits.
std::size_t weights_of(const EmbeddingParameters& spec) {
  return Layout::padded(spec.vocabulary) * Layout::padded(spec.features);
}
std::size_t weights_of(const PositionParameters& spec) {
  return spec.positions * Layout::padded(spec.features);
}
std::size_t weights_of(const ClassTokenParameters& spec) { return Layout::padded(spec.features); }
std::size_t weights_of(const BiasParameters& spec) { return Layout::padded(spec.count); }
template <class TwoVectors>
std::size_t weights_of(const TwoVectors& spec) {
  return Layout::padded(spec.channels);
}

// True for parameters that matrix products read.
template <class Spec>
constexpr bool kHasCopy = requires(const Spec& spec) {
  spec.out;
};
template <>
constexpr bool kHasCopy<EmbeddingParameters> = true;

// The numbers of the second part without padding, as a matrix.
struct SecondPart {
  std::size_t rows;
  std::size_t columns;

  [[nodiscard]] std::size_t padded() const { return rows * Layout::padded(columns); }
};

template <class Spec>
SecondPart second_part(const Spec& spec) {
  if constexpr (requires { spec.out; }) {
    return {spec.bias ? 1U : 0U, spec.out};
  } else if constexpr (std::is_same_v<Spec, PositionParameters>) {
    return {spec.segments, spec.features};
  } else if constexpr (std::is_same_v<Spec, RowNormParameters>) {
    return {spec.bias ? 1U : 0U, spec.channels};
  } else if constexpr (requires { spec.channels; }) {
    return {1, spec.channels};
  } else {
    return {0, 0};
  }
}

// Calls visit(index in the canonical order, index in the block) for `rows` rows.
template <class Visit>
void for_each_row(std::size_t rows, std::size_t columns, const Visit& visit) {
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t c = 0; c < columns; ++c) {
      visit(row * columns + c, row * Layout::padded(columns) + c);
    }
  }
}

// Returns the number of weights that stay together when a block is cut.
std::size_t cut_unit(const ParameterSpec& spec, std::size_t weights) {
  const auto* const linear = std::get_if<LinearParameters>(&spec);
  if (linear == nullptr) return weights;
  return Layout::kChannelBlock * Layout::padded(linear->in).elements();
}

// Each overload calls visit(index in the canonical order, index in the block) for the first part.
// Canonical weights are (out, C, H, W), stored ones (out, H, W, `stored_channels`).
template <class Visit>
void for_each_filter(std::size_t out, const nets::Shape& in, std::size_t stored_channels,
                     const Visit& visit) {
  const std::size_t stored = in.height * in.width * stored_channels;
  for (std::size_t o = 0; o < out; ++o) {
    std::size_t canonical = o * in.elements();
    for (std::size_t c = 0; c < in.channels; ++c) {
      for (std::size_t h = 0; h < in.height; ++h) {
        for (std::size_t w = 0; w < in.width; ++w) {
          visit(canonical++, o * stored + (h * in.width + w) * stored_channels + c);
        }
      }
    }
  }
}

template <class Visit>
void for_each_weight(const ConvolutionParameters& spec, const Visit& visit) {
  for_each_filter(
      spec.out,
      {.channels = spec.in / spec.groups, .height = spec.kernel.height, .width = spec.kernel.width},
      filter_channels(spec), visit);
}
template <class Visit>
void for_each_weight(const TransposedConvolutionParameters& spec, const Visit& visit) {
  for_each_weight(spec.adjoint(), visit);
}
template <class Visit>
void for_each_weight(const LinearParameters& spec, const Visit& visit) {
  for_each_filter(spec.out, spec.in, Layout::padded(spec.in.channels), visit);
}
template <class Visit>
void for_each_weight(const EmbeddingParameters& spec, const Visit& visit) {
  for_each_row(spec.vocabulary, spec.features, visit);
}
template <class Visit>
void for_each_weight(const PositionParameters& spec, const Visit& visit) {
  for_each_row(spec.positions, spec.features, visit);
}
template <class Visit>
void for_each_weight(const ClassTokenParameters& spec, const Visit& visit) {
  for_each_row(1, spec.features, visit);
}
template <class Visit>
void for_each_weight(const BiasParameters& spec, const Visit& visit) {
  for_each_row(1, spec.count, visit);
}
template <class TwoVectors, class Visit>
void for_each_weight(const TwoVectors& spec, const Visit& visit) {
  for (std::size_t c = 0; c < spec.channels; ++c) visit(c, c);
}

// Calls visit for both parts, as above.
template <class Visit>
void for_each_parameter(const ParameterLayout& layout, const ParameterSpec& spec,
                        const Visit& visit) {
  std::visit(
      [&](const auto& alternative) {
        for_each_weight(alternative, visit);
        const SecondPart second = second_part(alternative);
        const std::size_t canonical = element_count(spec) - second.rows * second.columns;
        for_each_row(second.rows, second.columns, [&](std::size_t from, std::size_t to) {
          visit(canonical + from, layout.weight_count() + to);
        });
      },
      spec);
}

}  // namespace

std::size_t filter_channels(const ConvolutionParameters& spec) {
  return spec.groups > 1 ? spec.in / spec.groups : Layout::padded(spec.in);
}

ParameterLayout::ParameterLayout(Precision precision, const ParameterSpec& spec)
    : weight_count_{std::visit([](const auto& s) { return weights_of(s); }, spec)},
      bias_count_{std::visit([](const auto& s) { return second_part(s).padded(); }, spec)},
      cut_unit_{cut_unit(spec, weight_count_)},
      has_bf16_copy_{
          precision == Precision::kBf16 &&
          std::visit([](const auto& s) { return kHasCopy<std::decay_t<decltype(s)>>; }, spec)} {}

um::Bytes ParameterLayout::part_bytes(const ParameterPart& part) const {
  return part.count == 1 ? bytes() : float_bytes(cuts().range(part).count());
}

um::Bytes ParameterLayout::bf16_weights() const {
  um::expects(has_bf16_copy_, "the block has a bfloat16 copy");
  return um::round_up(um::Bytes{float_count() * kFloat}, kAlignment);
}

um::Bytes ParameterLayout::bf16_bias() const {
  return bf16_weights() + um::Bytes{weight_count_ * kBfloat16};
}

um::Bytes ParameterLayout::bytes() const {
  if (!has_bf16_copy_) return um::Bytes{float_count() * kFloat};
  return bf16_weights() + um::Bytes{float_count() * kBfloat16};
}

void import_block(Precision precision, const ParameterSpec& spec, std::span<const float> values,
                  std::span<std::byte> block) {
  const ParameterLayout layout{precision, spec};
  um::expects(values.size() == element_count(spec), "as many values as parameters");
  um::expects(block.size() == layout.bytes().count(), "a block of the layout's size");
  std::fill(block.begin(), block.end(), std::byte{0});
  auto* const floats = reinterpret_cast<float*>(block.data());
  for_each_parameter(layout, spec, [&](std::size_t canonical, std::size_t stored) {
    floats[stored] = values[canonical];
  });
  if (!layout.has_bf16_copy()) return;
  auto* const copy = reinterpret_cast<Bfloat16*>(block.data() + layout.bf16_weights().count());
  std::copy(floats, floats + layout.float_count(), copy);
}

void export_block(Precision precision, const ParameterSpec& spec, std::span<const std::byte> block,
                  std::span<float> values) {
  const ParameterLayout layout{precision, spec};
  um::expects(values.size() == element_count(spec), "as many values as parameters");
  um::expects(block.size() >= layout.float_count() * sizeof(float), "all floats of the block");
  const auto* const floats = reinterpret_cast<const float*>(block.data());
  for_each_parameter(layout, spec, [&](std::size_t canonical, std::size_t stored) {
    values[canonical] = floats[stored];
  });
}

}  // namespace spillway::cuda
