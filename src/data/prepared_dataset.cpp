#include "src/data/prepared_dataset.h"

#include <cmath>
#include <utility>

#include "um/error.h"

namespace spillway {

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
    standardise(byte_numbers_);  // as an image of a value each, so that they have its bits
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
