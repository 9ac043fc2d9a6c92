#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "nets/shape.h"
#include "src/ops/operation_row.h"
#include "um/bytes.h"

namespace spillway {

/// What a block of parameters holds. The canonical order, in which parameters are initialised,
/// hashed and written to checkpoints, is the order of the comment; a backend may store them in
/// another order and with padding.

/// (out, in / groups, kernel height, kernel width), then (out) biases if any.
struct ConvolutionParameters {
  std::size_t out;
  std::size_t in;  ///< of all groups
  nets::Extent kernel;
  bool bias;
  std::size_t groups = 1;
  friend bool operator==(const ConvolutionParameters&, const ConvolutionParameters&) = default;
};

/// (in, out / groups, kernel height, kernel width), then (out) biases if any.
struct TransposedConvolutionParameters {
  std::size_t in;   ///< of all groups
  std::size_t out;  ///< of all groups
  nets::Extent kernel;
  bool bias;
  std::size_t groups = 1;

  /// The weights alone, as those of the convolution that makes x of y.
  [[nodiscard]] ConvolutionParameters adjoint() const {
    return {.out = in, .in = out, .kernel = kernel, .bias = false, .groups = groups};
  }
  friend bool operator==(const TransposedConvolutionParameters&,
                         const TransposedConvolutionParameters&) = default;
};

/// (out, in.channels, in.height, in.width), then (out) biases if any.
struct LinearParameters {
  std::size_t out;
  nets::Shape in;
  bool bias;
  friend bool operator==(const LinearParameters&, const LinearParameters&) = default;
};

/// (channels) gamma, then (channels) beta.
struct BatchNormParameters {
  std::size_t channels;
  friend bool operator==(const BatchNormParameters&, const BatchNormParameters&) = default;
};

/// (channels) mean, then (channels) variance: batch norm's running statistics, not trained.
struct BatchNormStatistics {
  std::size_t channels;
  friend bool operator==(const BatchNormStatistics&, const BatchNormStatistics&) = default;
};

/// (channels) gamma, then (channels) beta if any: of a norm of each token.
struct RowNormParameters {
  std::size_t channels;
  bool bias;
  friend bool operator==(const RowNormParameters&, const RowNormParameters&) = default;
};

/// (vocabulary, features).
struct EmbeddingParameters {
  std::size_t vocabulary;
  std::size_t features;
  friend bool operator==(const EmbeddingParameters&, const EmbeddingParameters&) = default;
};

/// (positions, features), then (segments, features) if any.
struct PositionParameters {
  std::size_t positions;
  std::size_t segments;
  std::size_t features;
  friend bool operator==(const PositionParameters&, const PositionParameters&) = default;
};

/// (features): the token in front of an image's.
struct ClassTokenParameters {
  std::size_t features;
  friend bool operator==(const ClassTokenParameters&, const ClassTokenParameters&) = default;
};

/// (count) biases alone.
struct BiasParameters {
  std::size_t count;
  friend bool operator==(const BiasParameters&, const BiasParameters&) = default;
};

using ParameterSpec =
    std::variant<ConvolutionParameters, TransposedConvolutionParameters, LinearParameters,
                 BatchNormParameters, BatchNormStatistics, RowNormParameters, EmbeddingParameters,
                 PositionParameters, ClassTokenParameters, BiasParameters>;

/// Numbers in the canonical order.
[[nodiscard]] std::size_t element_count(const ParameterSpec& spec);

/// True where the first of the block's two parts are weights: of layers that sum over inputs, and
/// tables. Weight decay applies to these alone: not to gamma, nor to the second part, biases and
/// beta.
[[nodiscard]] bool has_weights(const ParameterSpec& spec);

/// A part of a parameter block that other programs know as an array of its own.
struct ParameterArray {
  std::string suffix;  ///< of the block's name: ".weight"
  std::vector<std::size_t> shape;
};

/// The arrays that a block consists of, one after the other in the canonical order, with PyTorch's
/// names and shapes.
[[nodiscard]] std::vector<ParameterArray> arrays_of(const ParameterSpec& spec);

/// A stretch of the floats of a stored block.
struct FloatRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] constexpr std::size_t count() const { return end - begin; }
  friend constexpr bool operator==(const FloatRange&, const FloatRange&) = default;
};

/// One of `count` stretches of a block of parameters, in the order in which a backend stores it.
/// Where it may be cut is the backend's business: between rows of a linear layer's weights. Biases
/// belong to the last part. A gradient, and what an optimizer keeps, may be blocks of one part
/// each; parameters themselves are one block. Only linear layers have several parts.
struct ParameterPart {
  std::size_t index = 0;
  std::size_t count = 1;
  /// Of an update by one of several ranks: the floats of the part that are this rank's. What the
  /// optimizer keeps are blocks of them alone, and the new parameters go to their place in a block
  /// as the gradient's. It may reach beyond the part's floats, and be empty then.
  std::optional<FloatRange> slice{};

  [[nodiscard]] constexpr bool is_last() const { return index + 1 == count; }
  friend constexpr bool operator==(const ParameterPart&, const ParameterPart&) = default;
};

/// What an update of a part goes over, in floats.
struct UpdatedFloats {
  FloatRange of_parameters;  ///< of the whole block
  std::size_t gradient = 0;  ///< where it begins in the gradient
  std::size_t written = 0;   ///< where it begins in the block that gets the new parameters

  /// `part` is the range of the part in the whole block.
  [[nodiscard]] static constexpr UpdatedFloats of(const ParameterPart& part,
                                                  const FloatRange& range) {
    if (!part.slice) return {.of_parameters = range, .written = range.begin};
    const std::size_t begin = std::min(part.slice->begin, range.count());
    const std::size_t end = std::min(part.slice->end, range.count());
    return {.of_parameters = {range.begin + begin, range.begin + end},
            .gradient = begin,
            .written = begin};
  }
};

/// What the names of its blocks and tasks end with: "[2]" of the third; nothing of the only one.
[[nodiscard]] inline std::string suffix_of(const ParameterPart& part) {
  return part.count == 1 ? "" : "[" + std::to_string(part.index) + "]";
}

/// What one of the parts costs, where they share the work evenly.
[[nodiscard]] inline OperationCost share_of(const OperationCost& whole, const ParameterPart& part) {
  return {.flops = whole.flops / static_cast<double>(part.count),
          .traffic = um::Bytes{whole.traffic.count() / part.count}};
}

/// Of an operation on a part of so many blocks of parameters.
[[nodiscard]] inline OperationCost update_cost(const ParameterSpec& parameters,
                                               const ParameterPart& part, double flops_each,
                                               std::size_t blocks) {
  const std::size_t all = element_count(parameters);
  const std::size_t count = part.slice ? std::min(part.slice->count() * part.count, all) : all;
  return share_of(
      {.flops = flops_each * static_cast<double>(count), .traffic = float_bytes(blocks * count)},
      part);
}

/// Where a stored block of floats may be cut: `weights` floats, which come first, behind each
/// `unit` of them.
class ParameterCuts {
 public:
  /// Requires: `unit` is not zero. The last unit may be a part of one.
  constexpr ParameterCuts(std::size_t weights, std::size_t total, std::size_t unit)
      : units_{std::max<std::size_t>((weights + unit - 1) / unit, 1)},
        unit_{unit},
        weights_{weights},
        total_{total} {}

  /// The fewest parts none of which has more than `most`, where there are such: else as many as
  /// there can be.
  [[nodiscard]] constexpr std::size_t parts(um::Bytes most) const {
    const std::size_t floats = most.count() / sizeof(float);
    const std::size_t behind = total_ - weights_;
    const std::size_t units_each =
        std::max<std::size_t>(floats > behind ? (floats - behind) / unit_ : 0, 1);
    return (units_ + units_each - 1) / units_each;
  }

  /// Parts differ by at most a unit, and what is behind the weights. Requires: no more parts than
  /// units.
  [[nodiscard]] constexpr FloatRange range(const ParameterPart& part) const {
    return {.begin = units_ * part.index / part.count * unit_,
            .end = part.is_last() ? total_ : units_ * (part.index + 1) / part.count * unit_};
  }

 private:
  std::size_t units_;
  std::size_t unit_;
  std::size_t weights_;
  std::size_t total_;
};

}  // namespace spillway
