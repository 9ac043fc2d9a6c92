#pragma once

#include <cstddef>

namespace spillway {

/// The figures that synthetic images show.
inline constexpr std::size_t kFigures = 10;

/// How far the point (u, v) lies outside figure number `figure`, negative inside; close to the edge
/// it is a distance. Figures fill the square from -1 to 1.
/// Requires: figure < kFigures.
[[nodiscard]] float outside_figure(std::size_t figure, float u, float v);

}  // namespace spillway
