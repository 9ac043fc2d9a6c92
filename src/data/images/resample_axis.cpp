#include "src/data/images/resample_axis.h"

#include <algorithm>
#include <cmath>

#include "um/error.h"

namespace spillway {
namespace {

double triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

}  // namespace

// Pillow copies a crop before it resizes it, so that pixels are counted from the first one of the
// stretch.
ResampleAxis::ResampleAxis(const Stretch& stretch) {
  const auto& [from, to, size, first, count] = stretch;
  um::expects(0 <= from && from < to && count > 0 && first + count <= size, "a stretch of pixels");
  const double origin = std::floor(from);
  const double begin = from - origin;
  const double last = std::ceil(to) - origin;
  const double scale = (to - from) / static_cast<double>(size);
  const double reach = std::max(scale, 1.0);
  std::vector<double> weights;
  for (std::size_t i = first; i < first + count; ++i) {
    const double centre = begin + (static_cast<double>(i) + 0.5) * scale;
    const double least = std::trunc(std::max(centre - reach + 0.5, 0.0));
    const double most = std::min(std::trunc(centre + reach + 0.5), last);
    weights.clear();
    double sum = 0;
    for (double pixel = least; pixel < most; ++pixel) {
      weights.push_back(triangle((pixel - centre + 0.5) * (1.0 / reach)));
      sum += weights.back();
    }
    taps_.push_back({.pixel = static_cast<std::size_t>(origin + least),
                     .weight = weights_.size(),
                     .count = weights.size()});
    for (const double weight : weights) {
      const double share = sum == 0 ? weight : weight / sum;
      weights_.push_back(static_cast<std::int32_t>(std::lround(share * (1 << kWeightBits))));
    }
  }
  begin_ = taps_.front().pixel;
  for (const Taps& taps : taps_) end_ = std::max(end_, taps.pixel + taps.count);
}

}  // namespace spillway
