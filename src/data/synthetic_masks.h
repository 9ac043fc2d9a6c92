#pragma once

#include <cstdint>
#include <string>

#include "src/data/synthetic.h"

namespace spillway {

/// The images of a SyntheticDataset with a label for each pixel: 0 for the background, 1 + the
/// figure's class within the figure, -1 on its edge, which is some of both (as the borders of
/// PASCAL VOC's segments do not count).
class SyntheticMasks final : public Dataset {
 public:
  /// Requires: an image that is not empty, at least two classes, the background's included, size >=
  /// 1.
  SyntheticMasks(const nets::Shape& image, std::size_t classes, std::size_t size,
                 std::uint64_t seed, Split split);

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] nets::Shape image() const override { return figures_.image(); }
  [[nodiscard]] std::size_t classes() const override { return figures_.classes() + 1; }
  [[nodiscard]] std::size_t size() const override { return figures_.size(); }
  void read(std::size_t index, std::span<float> image) const override {
    figures_.read(index, image);
  }
  [[nodiscard]] std::int32_t label(std::size_t index) const override {
    return 1 + figures_.label(index);
  }
  [[nodiscard]] bool labels_pixels() const override { return true; }
  void labels(std::size_t index, std::span<std::int32_t> labels) const override;

 private:
  SyntheticDataset figures_;
};

/// As many as make_synthetic() draws.
[[nodiscard]] DatasetPair make_synthetic_masks(const nets::Shape& image, std::size_t classes,
                                               std::uint64_t seed);

}  // namespace spillway
