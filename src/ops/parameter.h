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

/// Kinds of parameter blocks. Parameters are initialised, hashed and written to checkpoints in the
/// canonical order, which the comment of each struct gives. A backend may store them in another
/// order and with padding.

/// (out, in / groups, kernel height, kernel width), then (out) biases if any.
struct ConvolutionParameters {
  std::size_t out;
  std::size_t in;  ///< over all groups
  nets::Extent kernel;
  bool bias;
  std::size_t groups = 1;
  friend bool operator==(const ConvolutionParameters&, const ConvolutionParameters&) = default;
};

/// (in, out / groups, kernel height, kernel width), then (out) biases if any.
struct TransposedConvolutionParameters {
  std::size_t in;   ///< over all groups
  std::size_t out;  ///< over all groups
  nets::Extent kernel;
  bool bias;
  std::size_t groups = 1;

  /// Returns the weights (without biases) as those of the convolution that computes x from y.
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

/// (channels) gamma, then (channels) beta if any; for a norm over each token.
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

/// (features): the token that precedes an image's tokens.
struct ClassTokenParameters {
  std::size_t features;
  friend bool operator==(const ClassTokenParameters&, const ClassTokenParameters&) = default;
};

/// (count) biases without weights.
struct BiasParameters {
  std::size_t count;
  friend bool operator==(const BiasParameters&, const BiasParameters&) = default;
};

using ParameterSpec =
    std::variant<ConvolutionParameters, TransposedConvolutionParameters, LinearParameters,
                 BatchNormParameters, BatchNormStatistics, RowNormParameters, EmbeddingParameters,
                 PositionParameters, ClassTokenParameters, BiasParameters>;

/// Returns how many numbers the block has in the canonical order.
[[nodiscard]] std::size_t element_count(const ParameterSpec& spec);

/// Returns true if the block begins with weights (of a layer that sums over inputs, or of a table).
/// Weight decay applies to these weights only, not to gamma, beta or biases.
[[nodiscard]] bool has_weights(const ParameterSpec& spec);

/// A part of a parameter block that other programs store as a separate array.
struct ParameterArray {
  std::string suffix;  ///< of the block's name: ".weight"
  std::vector<std::size_t> shape;
};

/// Returns the arrays of a block in the canonical order, with PyTorch's names and shapes.
[[nodiscard]] std::vector<ParameterArray> arrays_of(const ParameterSpec& spec);

/// A range of floats in a stored block.
struct FloatRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] constexpr std::size_t count() const { return end - begin; }
  friend constexpr bool operator==(const FloatRange&, const FloatRange&) = default;
};

/// One of `count` consecutive parts of a parameter block, in the order in which a backend stores
/// it. The backend decides where a block may be cut: between rows of a linear layer's weights.
/// Biases belong to the last part. A gradient or optimizer state may be stored as one block per
/// part; parameters always are a single block. Only linear layers have several parts.
struct ParameterPart {
  std::size_t index = 0;
  std::size_t count = 1;
  /// Set for an update that several ranks share: this rank's floats of the part. The optimizer
  /// state then has these floats only, and the new parameters go to their place in a block of the
  /// gradient's size. The range may extend beyond the part's floats, or lie outside and so be
  /// empty.
  std::optional<FloatRange> slice{};

  [[nodiscard]] constexpr bool is_last() const { return index + 1 == count; }
  friend constexpr bool operator==(const ParameterPart&, const ParameterPart&) = default;
};

/// The floats that an update of a part covers.
struct UpdatedFloats {
  FloatRange of_parameters;  ///< range in the whole block
  std::size_t gradient = 0;  ///< index of the first float in the gradient
  std::size_t written = 0;   ///< index of the first float in the block of new parameters

  /// Requires: `range` is the part's range in the whole block.
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

/// Returns the suffix of the part's block and task names: "[2]" for the third; empty for an only
/// part.
[[nodiscard]] inline std::string suffix_of(const ParameterPart& part) {
  return part.count == 1 ? "" : "[" + std::to_string(part.index) + "]";
}

/// Returns the cost of one part, if all parts share the work evenly.
[[nodiscard]] inline OperationCost share_of(const OperationCost& whole, const ParameterPart& part) {
  return {.flops = whole.flops / static_cast<double>(part.count),
          .traffic = um::Bytes{whole.traffic.count() / part.count}};
}

/// Returns the cost of an operation on `blocks` blocks of one part.
[[nodiscard]] inline OperationCost update_cost(const ParameterSpec& parameters,
                                               const ParameterPart& part, double flops_each,
                                               std::size_t blocks) {
  const std::size_t all = element_count(parameters);
  const std::size_t count = part.slice ? std::min(part.slice->count() * part.count, all) : all;
  return share_of(
      {.flops = flops_each * static_cast<double>(count), .traffic = float_bytes(blocks * count)},
      part);
}

/// The places where a stored block of floats may be cut: the first `weights` floats, after each
/// `unit` of them.
class ParameterCuts {
 public:
  /// Requires: `unit` is not zero. The last unit may be incomplete.
  constexpr ParameterCuts(std::size_t weights, std::size_t total, std::size_t unit)
      : units_{std::max<std::size_t>((weights + unit - 1) / unit, 1)},
        unit_{unit},
        weights_{weights},
        total_{total} {}

  /// Returns the fewest parts of at most `most` bytes each; if impossible, the largest possible
  /// number.
  [[nodiscard]] constexpr std::size_t parts(um::Bytes most) const {
    const std::size_t floats = most.count() / sizeof(float);
    const std::size_t behind = total_ - weights_;
    const std::size_t units_each =
        std::max<std::size_t>(floats > behind ? (floats - behind) / unit_ : 0, 1);
    return (units_ + units_each - 1) / units_each;
  }

  /// Returns the floats of a part. Parts differ by at most a unit, and the last part also has the
  /// floats after the weights. Requires: no more parts than units.
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
