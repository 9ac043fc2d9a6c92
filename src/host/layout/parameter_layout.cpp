#include "src/host/layout/parameter_layout.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "um/error.h"

namespace spillway::host {
namespace {

using Tag = dnnl::memory::format_tag;

ParameterParts make_parts(std::size_t first, std::size_t second) {
  return {.first = first,
          .second_begin = aligned(first),
          .second = second,
          .total = aligned(first) + aligned(second)};
}

ParameterParts parts(const Layout& layout, const ConvolutionParameters& spec) {
  if (spec.groups > 1) {
    return make_parts(spec.out * (spec.in / spec.groups) * spec.kernel.height * spec.kernel.width,
                      spec.bias ? spec.out : 0);
  }
  const std::size_t out = layout.padded(spec.out);
  return make_parts(out * layout.padded(spec.in) * spec.kernel.height * spec.kernel.width,
                    spec.bias ? out : 0);
}
ParameterParts parts(const Layout& layout, const TransposedConvolutionParameters& spec) {
  return make_parts(parts(layout, spec.adjoint()).first, spec.bias ? layout.padded(spec.out) : 0);
}
ParameterParts parts(const Layout& layout, const LinearParameters& spec) {
  const std::size_t out = layout.padded(spec.out);
  return make_parts(out * layout.padded(spec.in).elements(), spec.bias ? out : 0);
}
ParameterParts parts(const Layout& layout, const RowNormParameters& spec) {
  const std::size_t channels = layout.padded(spec.channels);
  return make_parts(channels, spec.bias ? channels : 0);
}
ParameterParts parts(const Layout& layout, const EmbeddingParameters& spec) {
  return make_parts(spec.vocabulary * layout.padded(spec.features), 0);
}
ParameterParts parts(const Layout& layout, const PositionParameters& spec) {
  const std::size_t features = layout.padded(spec.features);
  return make_parts(spec.positions * features, spec.segments * features);
}
ParameterParts parts(const Layout& layout, const ClassTokenParameters& spec) {
  return make_parts(layout.padded(spec.features), 0);
}
ParameterParts parts(const Layout& /*layout*/, const BiasParameters& spec) {
  return make_parts(spec.count, 0);
}
template <class TwoRows>
ParameterParts parts(const Layout& layout, const TwoRows& spec) {
  return make_parts(layout.padded(spec.channels), layout.padded(spec.channels));
}

// How many output and input channels of a convolution's weights lie next to each other.
struct WeightLanes {
  std::size_t out;
  std::size_t in;
};

// Of a dense input, all channels (Ohwi16o); with a dense output, all is dense (oihw).
WeightLanes lanes_of(const Layout& layout, const ConvolutionParameters& spec) {
  if (layout.is_dense(spec.out)) return {.out = 1, .in = 1};
  return {.out = layout.block(), .in = layout.is_dense(spec.in) ? spec.in : layout.block()};
}

// Each calls visit(index in the canonical order, index in the block) for all weights.
template <class Visit>
void for_each_weight(const Layout& layout, const ConvolutionParameters& spec, const Visit& visit) {
  const std::size_t taps = spec.kernel.height * spec.kernel.width;
  if (spec.groups > 1) {
    for (std::size_t i = 0; i < spec.out * (spec.in / spec.groups) * taps; ++i) visit(i, i);
    return;
  }
  const auto [ob, ib] = lanes_of(layout, spec);
  const std::size_t in = layout.padded(spec.in);
  for (std::size_t o = 0; o < spec.out; ++o) {
    for (std::size_t i = 0; i < spec.in; ++i) {
      for (std::size_t tap = 0; tap < taps; ++tap) {
        const std::size_t row = ((o / ob * (in / ib) + i / ib) * taps + tap) * ib + i % ib;
        visit((o * spec.in + i) * taps + tap, row * ob + o % ob);
      }
    }
  }
}

template <class Visit>
void for_each_weight(const Layout& layout, const TransposedConvolutionParameters& spec,
                     const Visit& visit) {
  for_each_weight(layout, spec.adjoint(), visit);
}

// The number of each row of (inputs, outputs) by the input's canonical place.
std::vector<std::size_t> rows_of(const Layout& layout, const nets::Shape& in) {
  std::vector<std::size_t> rows;
  rows.reserve(in.elements());
  for (std::size_t c = 0; c < in.channels; ++c) {
    for (std::size_t h = 0; h < in.height; ++h) {
      for (std::size_t w = 0; w < in.width; ++w) rows.push_back(layout.index(in, c, h, w));
    }
  }
  return rows;
}

// In strips of outputs that share a cache line: VGG's first linear layer has 400 MB.
template <class Visit>
void for_each_weight(const Layout& layout, const LinearParameters& spec, const Visit& visit) {
  const std::vector<std::size_t> rows = rows_of(layout, spec.in);
  const std::size_t out = layout.padded(spec.out);
  for (std::size_t begin = 0; begin < spec.out; begin += kAlignedFloats) {
    const std::size_t end = std::min(begin + kAlignedFloats, spec.out);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t o = begin; o < end; ++o) visit(o * rows.size() + i, rows[i] * out + o);
    }
  }
}

// Of so many rows of a table.
template <class Visit>
void for_each_row(const Layout& layout, std::size_t rows, std::size_t features,
                  const Visit& visit) {
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t f = 0; f < features; ++f) {
      visit(row * features + f, row * layout.padded(features) + f);
    }
  }
}
template <class Visit>
void for_each_weight(const Layout& layout, const EmbeddingParameters& spec, const Visit& visit) {
  for_each_row(layout, spec.vocabulary, spec.features, visit);
}
template <class Visit>
void for_each_weight(const Layout& layout, const PositionParameters& spec, const Visit& visit) {
  for_each_row(layout, spec.positions, spec.features, visit);
}
template <class Visit>
void for_each_weight(const Layout& layout, const ClassTokenParameters& spec, const Visit& visit) {
  for_each_row(layout, 1, spec.features, visit);
}
template <class Visit>
void for_each_weight(const Layout& layout, const BiasParameters& spec, const Visit& visit) {
  for_each_row(layout, 1, spec.count, visit);
}

template <class TwoRows, class Visit>
void for_each_weight(const Layout& /*layout*/, const TwoRows& spec, const Visit& visit) {
  for (std::size_t c = 0; c < spec.channels; ++c) visit(c, c);
}

// Numbers of the second part without padding, in rows of so many.
struct SecondPart {
  std::size_t rows;
  std::size_t columns;
};

template <class Weighted>
requires requires(const Weighted& spec) { spec.out; }
SecondPart second_part(const Weighted& spec) { return {spec.bias ? 1U : 0U, spec.out}; }
SecondPart second_part(const BatchNormParameters& spec) { return {1, spec.channels}; }
SecondPart second_part(const BatchNormStatistics& spec) { return {1, spec.channels}; }
SecondPart second_part(const RowNormParameters& spec) {
  return {spec.bias ? 1U : 0U, spec.channels};
}
SecondPart second_part(const PositionParameters& spec) { return {spec.segments, spec.features}; }
template <class OnePart>
SecondPart second_part(const OnePart& /*spec*/) {
  return {0, 0};
}

// Calls visit as above for the whole block.
template <class Visit>
void for_each_parameter(const Layout& layout, const ParameterSpec& spec, const Visit& visit) {
  std::visit(
      [&](const auto& alternative) {
        for_each_weight(layout, alternative, visit);
        const SecondPart second = second_part(alternative);
        const std::size_t canonical = element_count(spec) - second.rows * second.columns;
        const std::size_t begin = parts(layout, alternative).second_begin;
        for_each_row(layout, second.rows, second.columns, [&](std::size_t from, std::size_t to) {
          visit(canonical + from, begin + to);
        });
      },
      spec);
}

// The floats of a block that is in parts. Neighbours are mostly in the part that was used last.
class StoredFloats {
 public:
  StoredFloats(const ParameterCuts& cuts, std::span<float* const> parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts_.push_back(
          {.range = cuts.range({.index = i, .count = parts.size()}), .floats = parts[i]});
    }
    here_ = parts_.front();
  }

  [[nodiscard]] float& at(std::size_t stored) {
    if (stored < here_.range.begin || stored >= here_.range.end) {
      here_ =
          *std::ranges::find_if(parts_, [&](const Part& part) { return stored < part.range.end; });
    }
    return here_.floats[stored - here_.range.begin];
  }

 private:
  struct Part {
    FloatRange range;
    float* floats = nullptr;
  };
  std::vector<Part> parts_;
  Part here_;
};

}  // namespace

ParameterCuts cuts_of(const Layout& layout, const ParameterSpec& spec) {
  const ParameterParts parts = parts_of(layout, spec);
  const auto* const linear = std::get_if<LinearParameters>(&spec);
  if (linear == nullptr) return {parts.total, parts.total, parts.total};
  return {parts.first, parts.total, kAlignedFloats * layout.padded(linear->out)};
}

ParameterParts parts_of(const Layout& layout, const ParameterSpec& spec) {
  return std::visit([&](const auto& alternative) { return parts(layout, alternative); }, spec);
}

void zero_gaps(const ParameterParts& parts, float* block) {
  std::fill(block + parts.first, block + parts.second_begin, 0.F);
  std::fill(block + parts.second_begin + parts.second, block + parts.total, 0.F);
}

Desc weights_desc(const Layout& layout, const ConvolutionParameters& spec) {
  if (spec.groups > 1) {
    return float_desc({spec.groups, spec.out / spec.groups, spec.in / spec.groups,
                       spec.kernel.height, spec.kernel.width},
                      Tag::goihw);
  }
  const bool is_wide = layout.block() == 16;
  Tag tag = is_wide ? Tag::OIhw16i16o : Tag::OIhw8i8o;
  if (layout.is_dense(spec.in)) tag = is_wide ? Tag::Ohwi16o : Tag::Ohwi8o;
  if (layout.is_dense(spec.out)) tag = Tag::oihw;
  return float_desc(
      {layout.padded(spec.out), layout.padded(spec.in), spec.kernel.height, spec.kernel.width},
      tag);
}

Desc weights_desc(const Layout& layout, const LinearParameters& spec) {
  return float_desc({layout.padded(spec.out), layout.padded(spec.in).elements()}, Tag::ba);
}

Desc bias_desc(const Layout& layout, const ConvolutionParameters& spec) {
  if (!spec.bias) return {};
  return spec.groups > 1 ? float_desc({spec.out}, Tag::x) : vector_desc(layout, spec.out);
}

Desc bias_desc(const Layout& layout, const LinearParameters& spec) {
  return spec.bias ? vector_desc(layout, spec.out) : Desc{};
}

Desc vector_desc(const Layout& layout, std::size_t channels) {
  return float_desc({layout.padded(channels)}, Tag::x);
}

void import_block(const Layout& layout, const ParameterSpec& spec, std::span<const float> values,
                  std::span<float* const> parts) {
  um::expects(values.size() == element_count(spec), "as many values as parameters");
  const ParameterCuts cuts = cuts_of(layout, spec);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::fill_n(parts[i], cuts.range({.index = i, .count = parts.size()}).count(), 0.F);
  }
  StoredFloats floats{cuts, parts};
  for_each_parameter(layout, spec, [&](std::size_t canonical, std::size_t stored) {
    floats.at(stored) = values[canonical];
  });
}

void export_block(const Layout& layout, const ParameterSpec& spec, std::span<float* const> parts,
                  std::span<float> values) {
  um::expects(values.size() == element_count(spec), "as many values as parameters");
  StoredFloats floats{cuts_of(layout, spec), parts};
  for_each_parameter(layout, spec, [&](std::size_t canonical, std::size_t stored) {
    values[canonical] = floats.at(stored);
  });
}

}  // namespace spillway::host
