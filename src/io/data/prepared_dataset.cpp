#include "src/io/data/prepared_dataset.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

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

// The centre of output i lies at (i + 1/2) from / to - 1/2, between two inputs. Beyond the first
// and last centre the edge is repeated.
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

ChannelStatistics measure_channels(const Dataset& dataset) {
  const nets::Shape shape = dataset.image();
  const std::size_t plane = shape.height * shape.width;
  std::vector<float> image(shape.elements());
  std::vector<double> sum(shape.channels);
  std::vector<double> sum_of_squares(shape.channels);
  for (std::size_t index = 0; index < dataset.size(); ++index) {
    dataset.read(index, image);
    for (std::size_t i = 0; i < image.size(); ++i) {
      const double value = image[i];
      sum[i / plane] += value;
      sum_of_squares[i / plane] += value * value;
    }
  }
  const double count = static_cast<double>(dataset.size()) * static_cast<double>(plane);
  ChannelStatistics statistics;
  for (std::size_t c = 0; c < shape.channels; ++c) {
    constexpr double kMinVariance = 1e-10;  // far below one grey level, 1 / 255, squared
    const double mean = sum[c] / count;
    const double variance = sum_of_squares[c] / count - mean * mean;
    statistics.mean.push_back(static_cast<float>(mean));
    statistics.deviation.push_back(
        variance < kMinVariance ? 1.0F : static_cast<float>(std::sqrt(variance)));
  }
  return statistics;
}

PreparedDataset::PreparedDataset(std::unique_ptr<Dataset> stored, ChannelStatistics statistics,
                                 const nets::Shape& image)
    : stored_{std::move(stored)},
      statistics_{std::move(statistics)},
      image_{image},
      resize_{stored_->image(), image} {
  um::expects(statistics_.mean.size() == stored_->image().channels &&
                  statistics_.deviation.size() == stored_->image().channels,
              "statistics of each channel");
  const nets::Shape shape = stored_->image();
  um::expects(
      !stored_->labels_pixels() || (shape.height == image_.height && shape.width == image_.width),
      "labelled pixels keep their places");
  if (const ByteImages* const bytes = stored_->as_bytes()) {
    byte_numbers_.assign(bytes->byte_numbers().begin(), bytes->byte_numbers().end());
    standardise(byte_numbers_);  // in the same way as images, so that the bits are equal
  }
}

const ByteImages* PreparedDataset::as_bytes() const {
  return stored_->as_bytes() != nullptr && stored_->image() == image_ ? this : nullptr;
}

void PreparedDataset::read(std::size_t index, std::span<float> image) const {
  um::expects(image.size() == image_.elements(), "room for one image");
  const nets::Shape shape = stored_->image();
  if (shape == image_) {
    stored_->read(index, image);
    standardise(image);
    return;
  }
  std::vector<float> as_stored(shape.elements());
  stored_->read(index, as_stored);
  standardise(as_stored);
  resize_(as_stored, image);
}

void PreparedDataset::standardise(std::span<float> image) const {
  const std::size_t plane = image.size() / statistics_.mean.size();
  for (std::size_t c = 0; c < statistics_.mean.size(); ++c) {
    const float mean = statistics_.mean[c];
    const float scale = 1.0F / statistics_.deviation[c];
    for (float& value : image.subspan(c * plane, plane)) value = (value - mean) * scale;
  }
}

}  // namespace spillway
