#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "src/host/layout/host_kernel.h"

namespace spillway::host {

/// Strips of adjacent channels; a strip has one group of lanes per pixel.
struct Strips {
  Strips(const Layout& layout, const TensorShape& shape)
      : batch{shape.batch},
        lanes{layout.lanes(shape.image)},
        blocks{layout.padded(shape.image.channels) / lanes},
        pixels{shape.image.height * shape.image.width} {}

  [[nodiscard]] std::size_t begin(std::size_t image, std::size_t block) const {
    return (image * blocks + block) * pixels * lanes;
  }

  std::size_t batch;
  std::size_t lanes;
  std::size_t blocks;
  std::size_t pixels;
};

/// Sums each channel of `dy`, padding included. One thread computes each sum, in order.
template <class T>
void sum_channels(const Strips& strips, const T* dy, float* sums) {
  constexpr std::size_t kMaxLanes = 16;
#pragma omp parallel for schedule(static)
  for (std::size_t block = 0; block < strips.blocks; ++block) {
    std::array<double, kMaxLanes> partial{};
    for (std::size_t n = 0; n < strips.batch; ++n) {
      const T* const strip = dy + strips.begin(n, block);
      for (std::size_t pixel = 0; pixel < strips.pixels; ++pixel) {
        for (std::size_t lane = 0; lane < strips.lanes; ++lane) {
          partial[lane] += static_cast<double>(float{strip[pixel * strips.lanes + lane]});
        }
      }
    }
    std::transform(partial.begin(), partial.begin() + static_cast<std::ptrdiff_t>(strips.lanes),
                   sums + block * strips.lanes, [](double sum) { return static_cast<float>(sum); });
  }
}

}  // namespace spillway::host
