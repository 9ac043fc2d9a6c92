#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/io/data/dataset.h"
#include "src/ops/narrow_floats.h"

namespace spillway::test {

/// Images of bytes, each channel of which stands for other numbers. Number 5 has no label.
class ByteDataset final : public Dataset, private ByteImages {
 public:
  ByteDataset(const nets::Shape& image, std::size_t classes, std::size_t size)
      : image_{image}, classes_{classes}, size_{size}, numbers_(image.channels * kByteValues) {
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      const float mean = static_cast<float>(1 + i / kByteValues) / 7;
      numbers_[i] = (static_cast<float>(i % kByteValues) / 255.0F - mean) / 0.3F;
    }
  }
  [[nodiscard]] std::string name() const override { return "images of bytes"; }
  [[nodiscard]] nets::Shape image() const override { return image_; }
  [[nodiscard]] std::size_t classes() const override { return classes_; }
  [[nodiscard]] std::size_t size() const override { return size_; }
  [[nodiscard]] std::int32_t label(std::size_t index) const override {
    return index == 5 ? -1 : static_cast<std::int32_t>(index % classes_);
  }
  void read(std::size_t index, std::span<float> image) const override {
    std::vector<std::uint8_t> bytes(image.size());
    draw(index, bytes);
    look_up(bytes, numbers_, image);
    if (label(index) < 0) std::ranges::fill(image, 0.F);
  }
  [[nodiscard]] const ByteImages* as_bytes() const override { return this; }

 private:
  [[nodiscard]] std::span<const float> byte_numbers() const override { return numbers_; }
  void show_bytes(std::size_t index, std::uint64_t /*epoch*/, std::span<std::uint8_t> bytes,
                  std::span<std::int32_t> labels) const override {
    draw(index, bytes);
    labels[0] = label(index);
  }

  static void draw(std::size_t index, std::span<std::uint8_t> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::uint8_t>(index * 31 + i * i % 253);
    }
  }

  nets::Shape image_;
  std::size_t classes_;
  std::size_t size_;
  std::vector<float> numbers_;
};

}  // namespace spillway::test
