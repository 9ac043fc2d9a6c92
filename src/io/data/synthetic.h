#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/io/data/dataset.h"
#include "src/io/data/scene.h"
#include "src/io/data/token_dataset.h"
#include "src/io/random.h"

namespace spillway {

enum class Split : std::uint8_t { kTrain, kTest };

/// Drawn images that can be learnt: one figure of random place, size and turn before a background
/// of random light, with mild noise. A class is a figure with a colour and a pattern of stripes;
/// grey images have no colours and more patterns. Image `index` is a function of the seed, the
/// split and `index` alone. As many images of each class as of any other, or one more.
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
  /// What image `index` shows, but for the noise.
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

/// The same images with a label for each pixel: 0 for the background, 1 + the figure's class within
/// the figure, -1 on its edge, which is some of both (as the borders of PASCAL VOC's segments do
/// not count).
class SyntheticMasks final : public SyntheticDataset {
 public:
  /// Requires: an image that is not empty, at least two classes, the background's included, size >=
  /// 1.
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

/// Images to learn from and to test on.
inline constexpr std::size_t kSyntheticTrainImages = 50'000;
inline constexpr std::size_t kSyntheticTestImages = 1'000;
[[nodiscard]] DatasetPair make_synthetic(const nets::Shape& image, std::size_t classes,
                                         std::uint64_t seed);
[[nodiscard]] DatasetPair make_synthetic_masks(const nets::Shape& image, std::size_t classes,
                                               std::uint64_t seed);

/// Drawn text of a language that can be learnt: a Markov chain over at most 64 tokens, spread over
/// the vocabulary. Behind each token come four others, drawn once from the seed, with probabilities
/// 1/2, 1/4, 1/8 and 1/8: who knows the chain has a loss of at most 7/4 ln 2 = 1.21 a token, with
/// less where some of the four are the same. The chain never makes the mask. Window `index` is a
/// function of the seed, the split and `index` alone.
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
  std::size_t symbols_;  // of the chain
  std::size_t stride_;   // from the token of one to that of the next
};

/// Windows to learn from and to test on.
inline constexpr std::size_t kSyntheticTrainTexts = 50'000;
inline constexpr std::size_t kSyntheticTestTexts = 200;
[[nodiscard]] DatasetPair make_synthetic_text(const TokenTask& task);

}  // namespace spillway
