#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nets/shape.h"
#include "src/io/random.h"

namespace spillway {

/// The largest alpha: fractions drawn from it are within a few percent of a half.
inline constexpr float kMostMixAlpha = 1000;

/// How each image of a batch is mixed with the one before it, the first with the last. With both
/// ways on, each batch is mixed in one of them, with equal probability.
struct MixOptions {
  float mixup = 0;   ///< alpha of mixup (Zhang et al., 2018); 0: off
  float cutmix = 0;  ///< alpha of CutMix (Yun et al., 2019); 0: off

  [[nodiscard]] bool is_on() const { return mixup > 0 || cutmix > 0; }
  friend bool operator==(const MixOptions&, const MixOptions&) = default;
};

/// Random choices for a batch, as in torchvision's MixUp and CutMix. Mixup blends a fraction of the
/// other image in, drawn from Beta(alpha, alpha). CutMix replaces a rectangle of about that
/// fraction of the area.
class BatchMix {
 public:
  /// Requires: options.is_on(); an image that is not empty.
  BatchMix(const MixOptions& options, const nets::Shape& image, Random random);

  /// Fraction of the other image in each image, 0 to 1.
  [[nodiscard]] float part() const { return part_; }
  /// Mixes `images`, (N, C, H, W), in place and turns `labels` into MixedLabels. Each image has
  /// kMixedLabelNumbers numbers there; the first is its own label on entry. An image without a
  /// label, and the one after it, stay as they are.
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
  Box box_;  // for CutMix
};

}  // namespace spillway
