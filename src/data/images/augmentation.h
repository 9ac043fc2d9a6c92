#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spillway {

/// Of Augmentation::hue: half of the circle, in both directions.
inline constexpr float kMostHue = 0.5F;

/// How images to learn from are changed, anew in each epoch.
struct Augmentation {
  /// The smallest part of an image's area that a random resized crop takes; 0: there is none, but
  /// the middle, as in an evaluation.
  float least_area = 0;
  float flip = 0;          ///< probability of left and right exchanged
  float color_jitter = 0;  ///< brightness, contrast and saturation change by up to this part
  float hue = 0;           ///< it turns by up to this part of the circle of colours, at most 0.5
  float erase = 0;         ///< probability of a rectangle without content
  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

/// That of a name: "none"; "standard", a crop and a flip, as ImageNet's usual recipe has it; or
/// "strong", also colours and erasing. Nothing when there is no such name.
[[nodiscard]] std::optional<Augmentation> find_augmentation(std::string_view name);

/// "crop 0.08, flip 0.5", for the user.
[[nodiscard]] std::string to_string(const Augmentation& augmentation);

}  // namespace spillway
