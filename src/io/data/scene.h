#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nets/shape.h"
#include "src/io/random.h"

namespace spillway {

/// Red, green and blue between 0 and 1. Grey images use only the first.
using Colour = std::array<float, 3>;

/// The cosine and sine of an angle.
struct Turn {
  float cosine = 1;
  float sine = 0;
};

/// Everything about a synthetic image except its noise.
struct Scene {
  std::size_t figure = 0;
  float centre_x = 0;  ///< pixels
  float centre_y = 0;
  float radius = 1;  ///< pixels
  Turn turn;         ///< of the figure
  Colour colour{};
  bool is_striped = false;
  Turn stripes;  ///< across the stripes, in the figure's own axes
  float stripe_phase = 0;
  Colour left{};  ///< the background is a gradient from this colour to the next
  Colour right{};
};

/// Chooses at random what an image of class `label` shows.
/// Requires: label < classes.
[[nodiscard]] Scene compose_scene(std::size_t label, std::size_t classes, const nets::Shape& shape,
                                  Random& random);

/// Draws `scene` and its noise, with values between 0 and 1, (C, H, W). Channels beyond the third
/// repeat.
void draw_scene(const Scene& scene, const nets::Shape& shape, Random& random,
                std::span<float> image);

/// Writes the label of each pixel, row by row: `label` inside the figure, 0 in the background and
/// -1 on the edge, where both are visible.
void mark_scene(const Scene& scene, const nets::Shape& shape, std::int32_t label,
                std::span<std::int32_t> labels);

}  // namespace spillway
