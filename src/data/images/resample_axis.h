#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace spillway {

/// A stretch of pixels, in pixels, made `size` pixels long, of which those from `first` on count.
struct Stretch {
  double from = 0;
  double to = 0;
  std::size_t size = 0;   ///< what it becomes
  std::size_t first = 0;  ///< of these, the first one that is wanted
  std::size_t count = 0;  ///< and how many are
};

/// Which pixels along an axis make up each pixel of a stretch, and with which weights: a triangle
/// as wide as two pixels of the result, or of the image where that is larger. Pixels and weights
/// are those of Pillow's Image.resize() with BILINEAR.
class ResampleAxis {
 public:
  static constexpr int kWeightBits = 22;  ///< weights are integers, their sum is about 2^22

  /// Pixels outside of the stretch count for nothing. Requires: 0 <= from < to, something wanted.
  explicit ResampleAxis(const Stretch& stretch);

  /// The pixels that are needed: [begin(), end()).
  [[nodiscard]] std::size_t begin() const { return begin_; }
  [[nodiscard]] std::size_t end() const { return end_; }
  /// Pixels of the result.
  [[nodiscard]] std::size_t size() const { return taps_.size(); }
  /// The first pixel that makes up pixel `i` of the result; counted from begin().
  [[nodiscard]] std::size_t first(std::size_t i) const { return taps_[i].pixel - begin_; }
  [[nodiscard]] std::span<const std::int32_t> weights(std::size_t i) const {
    return std::span{weights_}.subspan(taps_[i].weight, taps_[i].count);
  }

 private:
  struct Taps {
    std::size_t pixel;   // the first one
    std::size_t weight;  // of it, in weights_
    std::size_t count;
  };

  std::vector<Taps> taps_;
  std::vector<std::int32_t> weights_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace spillway
