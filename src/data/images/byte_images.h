#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace spillway {

/// A data set's images as bytes, each of which stands for a number.
///
/// Thread safety: any number of threads may call any of the functions at once.
class ByteImages {
 public:
  virtual ~ByteImages() = default;
  /// Of each value of each channel, (C, kByteValues). Valid as long as the data set.
  [[nodiscard]] virtual std::span<const float> byte_numbers() const = 0;
  /// As Dataset::show(), which writes the numbers of these bytes; but where the label is negative,
  /// all numbers are 0, and bytes stand for nothing.
  virtual void show_bytes(std::size_t index, std::uint64_t epoch, std::span<std::uint8_t> bytes,
                          std::span<std::int32_t> labels) const = 0;
};

/// Those that every epoch shows as they are stored, with a label each.
class StoredByteImages : public ByteImages {
 public:
  void show_bytes(std::size_t index, std::uint64_t /*epoch*/, std::span<std::uint8_t> bytes,
                  std::span<std::int32_t> labels) const final {
    read_bytes(index, bytes);
    labels[0] = label(index);
  }

 private:
  virtual void read_bytes(std::size_t index, std::span<std::uint8_t> bytes) const = 0;
  /// As Dataset::label().
  [[nodiscard]] virtual std::int32_t label(std::size_t index) const = 0;
};

/// Of images whose bytes stand for numbers from 0 to 1.
[[nodiscard]] std::vector<float> unit_numbers(std::size_t channels);

}  // namespace spillway
