#include "src/data/drawn_shape.h"

#include <algorithm>
#include <cmath>

#include "um/error.h"

namespace spillway {
namespace {

float length(float u, float v) { return std::sqrt(u * u + v * v); }

float box(float u, float v, float half_width, float half_height) {
  return std::max(std::abs(u) - half_width, std::abs(v) - half_height);
}

float disc(float u, float v) { return length(u, v) - 0.9F; }
float ring(float u, float v) { return std::abs(length(u, v) - 0.7F) - 0.2F; }
float square(float u, float v) { return box(u, v, 0.8F, 0.8F); }
float frame(float u, float v) { return std::abs(box(u, v, 0.7F, 0.7F)) - 0.2F; }
float triangle(float u, float v) {  // point up; 0.866 and 0.5: cosine and sine of 30 degrees
  return std::max(v - 0.5F, 0.866F * std::abs(u) - 0.5F * v - 0.5F);
}
float cross(float u, float v) { return std::min(box(u, v, 0.3F, 0.95F), box(u, v, 0.95F, 0.3F)); }
float diamond(float u, float v) { return 0.707F * (std::abs(u) + std::abs(v) - 0.95F); }
float bar(float u, float v) { return box(u, v, 0.95F, 0.3F); }
float half_disc(float u, float v) { return std::max(length(u, v) - 0.95F, v); }
float two_discs(float u, float v) { return length(std::abs(u) - 0.55F, v) - 0.4F; }

}  // namespace

float outside_figure(std::size_t figure, float u, float v) {
  switch (figure) {
    case 0:
      return disc(u, v);
    case 1:
      return ring(u, v);
    case 2:
      return square(u, v);
    case 3:
      return frame(u, v);
    case 4:
      return triangle(u, v);
    case 5:
      return cross(u, v);
    case 6:
      return diamond(u, v);
    case 7:
      return bar(u, v);
    case 8:
      return half_disc(u, v);
    case 9:
      return two_discs(u, v);
    default:
      break;
  }
  um::expects(false, "the number of a figure");
  return 0;
}

}  // namespace spillway
