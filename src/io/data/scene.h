#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nets/shape.h"
#include "src/io/random.h"

namespace spillway {

/// Red, green and blue between 0 and 1. Grey images use the first alone.
using Colour = std::array<float, 3>;

/// The cosine and sine of an angle.
struct Turn {
  float cosine = 1;
  float sine = 0;
};

/// Everything about a synthetic image but its noise.
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
  Colour left{};  ///< the background runs from this colour to the other
  Colour right{};
};

/// Chooses what image of class `label` shows.
/// Requires: label < classes.
[[nodiscard]] Scene compose_scene(std::size_t label, std::size_t classes, const nets::Shape& shape,
                                  Random& random);

/// Draws `scene` and its noise, values between 0 and 1, (C, H, W). Channels beyond the third
/// repeat.
void draw_scene(const Scene& scene, const nets::Shape& shape, Random& random,
                std::span<float> image);

/// Writes what each pixel shows, row by row: `label` where it is the figure's, 0 where it is the
/// background's, and -1 on the edge, where it is some of both.
void mark_scene(const Scene& scene, const nets::Shape& shape, std::int32_t label,
                std::span<std::int32_t> labels);

}  // namespace spillway
