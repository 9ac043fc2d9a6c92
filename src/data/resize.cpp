#include "src/data/resize.h"

#include <algorithm>
#include <string>

#include "um/error.h"

namespace spillway {

Resize::Resize(const nets::Shape& from, const nets::Shape& to)
    : from_{from},
      to_{to},
      channels_{mix_channels(from.channels, to.channels)},
      rows_{scale(from.height, to.height)},
      columns_{scale(from.width, to.width)} {}

Resize::Axis Resize::mix_channels(std::size_t from, std::size_t to) {
  Axis axis(to);
  for (std::size_t c = 0; c < to; ++c) {
    if (from == to) {
      axis[c] = {.first = c, .weights = {1.0F}};
    } else if (from == 1) {
      axis[c] = {.first = 0, .weights = {1.0F}};
    } else if (from == 3 && to == 1) {
      axis[c] = {.first = 0, .weights = {0.299F, 0.587F, 0.114F}};
    } else {
      throw um::Error{"images of " + std::to_string(from) + " channels cannot become images of " +
                      std::to_string(to) + "; choose a network image of " + std::to_string(from) +
                      " channels"};
    }
  }
  return axis;
}

Resize::Axis Resize::scale(std::size_t from, std::size_t to) {
  um::expects(from > 0 && to > 0, "images that are not empty");
  return to < from ? shrink(from, to) : grow(from, to);
}

// The centre of output i lies at (i + 1/2) from / to - 1/2, between two inputs; beyond the first
// and last centre the edge goes on.
Resize::Axis Resize::grow(std::size_t from, std::size_t to) {
  Axis axis(to);
  const double step = static_cast<double>(from) / static_cast<double>(to);
  const auto last = static_cast<double>(from - 1);
  for (std::size_t i = 0; i < to; ++i) {
    const double at = std::clamp((static_cast<double>(i) + 0.5) * step - 0.5, 0.0, last);
    const auto first = static_cast<std::size_t>(at);
    const auto second_weight = static_cast<float>(at - static_cast<double>(first));
    axis[i] = {.first = first, .weights = {1.0F - second_weight}};
    if (second_weight > 0) axis[i].weights.push_back(second_weight);
  }
  return axis;
}

// Output i covers the inputs from i * from / to up to (i + 1) * from / to. In units of 1 / to, all
// borders are integers.
Resize::Axis Resize::shrink(std::size_t from, std::size_t to) {
  Axis axis(to);
  for (std::size_t i = 0; i < to; ++i) {
    const std::size_t begin = i * from;
    const std::size_t end = begin + from;
    axis[i].first = begin / to;
    for (std::size_t input = begin / to; input * to < end; ++input) {
      const std::size_t covered = std::min(end, (input + 1) * to) - std::max(begin, input * to);
      axis[i].weights.push_back(static_cast<float>(covered) / static_cast<float>(from));
    }
  }
  return axis;
}

void Resize::operator()(std::span<const float> image, std::span<float> result) const {
  um::expects(image.size() == from_.elements() && result.size() == to_.elements(),
              "images of the two shapes");
  std::vector<float> row(from_.width);
  float* out = result.data();
  for (const Taps& channel : channels_) {
    for (const Taps& down : rows_) {
      std::fill(row.begin(), row.end(), 0.0F);
      for (std::size_t c = 0; c < channel.weights.size(); ++c) {
        for (std::size_t y = 0; y < down.weights.size(); ++y) {
          const float weight = channel.weights[c] * down.weights[y];
          const std::size_t line = (channel.first + c) * from_.height + down.first + y;
          const float* in = &image[line * from_.width];
          for (std::size_t x = 0; x < from_.width; ++x) row[x] += weight * in[x];
        }
      }
      for (const Taps& across : columns_) {
        float sum = 0;
        for (std::size_t x = 0; x < across.weights.size(); ++x) {
          sum += across.weights[x] * row[across.first + x];
        }
        *out++ = sum;
      }
    }
  }
}

}  // namespace spillway
