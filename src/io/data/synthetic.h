#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/io/data/dataset.h"
#include "src/io/data/token_dataset.h"
#include "src/io/random.h"

namespace spillway {

/// The content of a synthetic image.
struct Scene;

enum class Split : std::uint8_t { kTrain, kTest };

/// Random images that a network can learn: a figure of random place, size and turn on a background
/// gradient, with mild noise. A class is a figure with a colour and a pattern of stripes; grey
/// images have more patterns instead of colours. Image `index` depends only on the seed, the split
/// and `index`. The numbers of images per class differ by at most one.
class SyntheticDataset : public Dataset {
 public:
  /// Requires: an image that is not empty, at least one class, size >= 1.
  SyntheticDataset(const nets::Shape& image, std::size_t classes, std::size_t size,
                   std::uint64_t seed, Split split);

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] nets::Shape image() const override { return image_; }
  [[nodiscard]] std::size_t classes() const override { return classes_; }
  [[nodiscard]] std::size_t size() const override { return size_; }
  void read(std::size_t index, std::span<float> image) const override;
  [[nodiscard]] std::int32_t label(std::size_t index) const override;
  [[nodiscard]] std::string content_sha256() const override;

 protected:
  /// The content of image `index`, without its noise.
  [[nodiscard]] Scene scene(std::size_t index) const;

 private:
  [[nodiscard]] Random random(std::size_t index) const {
    return {seed_, static_cast<std::uint64_t>(split_), index};
  }

  nets::Shape image_;
  std::size_t classes_;
  std::size_t size_;
  std::uint64_t seed_;
  Split split_;
};

/// The same images with a label for each pixel: 0 in the background, 1 + the figure's class inside
/// the figure. Pixels on the edge have -1, as the borders of PASCAL VOC's segments, which do not
/// count.
class SyntheticMasks final : public SyntheticDataset {
 public:
  /// Requires: an image that is not empty; at least two classes, background included; size >= 1.
  SyntheticMasks(const nets::Shape& image, std::size_t classes, std::size_t size,
                 std::uint64_t seed, Split split)
      : SyntheticDataset{image, classes - 1, size, seed, split} {}

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::size_t classes() const override { return SyntheticDataset::classes() + 1; }
  [[nodiscard]] std::int32_t label(std::size_t index) const override {
    return 1 + SyntheticDataset::label(index);
  }
  [[nodiscard]] bool labels_pixels() const override { return true; }
  void labels(std::size_t index, std::span<std::int32_t> labels) const override;
};

/// Numbers of images for training and for testing.
inline constexpr std::size_t kSyntheticTrainImages = 50'000;
inline constexpr std::size_t kSyntheticTestImages = 1'000;
[[nodiscard]] DatasetPair make_synthetic(const nets::Shape& image, std::size_t classes,
                                         std::uint64_t seed);
[[nodiscard]] DatasetPair make_synthetic_masks(const nets::Shape& image, std::size_t classes,
                                               std::uint64_t seed);

/// Random text of a learnable language: a Markov chain over at most 64 tokens, spread over the
/// vocabulary. Four tokens, drawn once from the seed, may follow each token, with probabilities
/// 1/2, 1/4, 1/8 and 1/8. A model of the chain has a loss of at most 7/4 ln 2 = 1.21 per token,
/// less where some of the four are equal. The chain never produces the mask. Window `index` depends
/// only on the seed, the split and `index`.
class SyntheticText final : public TokenDataset {
 public:
  /// Requires: size >= 1; a vocabulary of at least two.
  SyntheticText(const TokenTask& task, std::size_t size, Split split);

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::size_t size() const override { return size_; }
  [[nodiscard]] std::string content_sha256() const override;

 private:
  void read_window(std::size_t index, std::span<std::int32_t> tokens) const override;

  std::size_t size_;
  Split split_;
  std::size_t symbols_;  // states of the chain
  std::size_t stride_;   // between the tokens of neighbouring states
};

/// Numbers of windows for training and for testing.
inline constexpr std::size_t kSyntheticTrainTexts = 50'000;
inline constexpr std::size_t kSyntheticTestTexts = 200;
[[nodiscard]] DatasetPair make_synthetic_text(const TokenTask& task);

}  // namespace spillway
