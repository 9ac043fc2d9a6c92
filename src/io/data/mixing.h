#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nets/shape.h"
#include "src/io/random.h"

namespace spillway {

/// The largest alpha: drawn parts are within a few percent of a half by then.
inline constexpr float kMostMixAlpha = 1000;

/// How each image of a batch is mixed with the one before it, the first one with the last. With
/// both, each batch is mixed in one of the two ways, as often in one as in the other.
struct MixOptions {
  float mixup = 0;   ///< alpha of mixup (Zhang et al., 2018); 0: there is none
  float cutmix = 0;  ///< alpha of CutMix (Yun et al., 2019); 0: likewise

  [[nodiscard]] bool is_on() const { return mixup > 0 || cutmix > 0; }
  friend bool operator==(const MixOptions&, const MixOptions&) = default;
};

/// What is drawn for a batch, as torchvision's MixUp and CutMix do: with mixup, a part of each
/// image is that of the other, drawn from Beta(alpha, alpha). With CutMix, a rectangle is, which
/// has about such a part of the area.
class BatchMix {
 public:
  /// Requires: options.is_on(); an image that is not empty.
  BatchMix(const MixOptions& options, const nets::Shape& image, Random random);

  /// Of the other image in each one, 0 to 1.
  [[nodiscard]] float part() const { return part_; }
  /// Mixes `images`, (N, C, H, W), in place, and makes MixedLabels of `labels`, kMixedLabelNumbers
  /// an image, of which the first one is its label. An image without a label, and the one behind
  /// it, stay as they are.
  void apply(std::span<float> images, std::span<std::int32_t> labels) const;

 private:
  // Rows [top, bottom) and columns [left, right).
  struct Box {
    std::size_t top = 0;
    std::size_t left = 0;
    std::size_t bottom = 0;
    std::size_t right = 0;
  };

  void draw_box(double kept, Random& random);
  void mix(std::size_t begin, std::size_t count, std::span<float> images,
           std::span<const std::int32_t> labels) const;
  void blend(std::span<float> own, std::span<const float> other) const;

  nets::Shape image_;
  bool is_cut_ = false;
  float part_ = 0;
  Box box_;  // of CutMix
};

}  // namespace spillway
