#include "src/data/images/resampler.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "um/error.h"
#include "um/machine/mapping.h"

namespace spillway {
namespace {

using PixelSums [[gnu::vector_size(16)]] = std::int32_t;
using PixelValues [[gnu::vector_size(4)]] = std::uint8_t;

constexpr std::int32_t kHalf = 1 << (ResampleAxis::kWeightBits - 1);

// Weights are positive, and their sum may exceed one by rounding.
std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::min(sum >> ResampleAxis::kWeightBits, 255));
}

SPILLWAY_WIDE void widen(const std::uint8_t* bytes, std::span<std::int32_t> numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = bytes[i];
}

// `row` has numbers of 32 bits, as compilers make poor code of vectors of four bytes.
SPILLWAY_WIDE void narrow(const ResampleAxis& columns, std::span<const std::int32_t> row,
                          std::uint8_t* result) {
  constexpr PixelSums kMost{255, 255, 255, 255};
  for (std::size_t x = 0; x < columns.size(); ++x) {
    const std::int32_t* pixel = row.data() + columns.first(x) * kPixelBytes;
    PixelSums sums{kHalf, kHalf, kHalf, kHalf};
    for (const std::int32_t weight : columns.weights(x)) {
      PixelSums values;
      std::memcpy(&values, pixel, sizeof(values));
      sums += values * weight;
      pixel += kPixelBytes;
    }
    sums >>= ResampleAxis::kWeightBits;
    sums = sums > kMost ? kMost : sums;
    const PixelValues bytes = __builtin_convertvector(sums, PixelValues);
    std::memcpy(result, &bytes, kPixelBytes);
    result += kPixelBytes;
  }
}

SPILLWAY_WIDE void add_weighted(const std::uint8_t* row, std::int32_t weight,
                                std::span<std::int32_t> sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += row[i] * weight;
}

SPILLWAY_WIDE void to_bytes(std::span<const std::int32_t> sums, std::uint8_t* bytes) {
  for (std::size_t i = 0; i < sums.size(); ++i) bytes[i] = to_byte(sums[i]);
}

}  // namespace

Resampler::Resampler(ResampleAxis columns, ResampleAxis rows)
    : columns_{std::move(columns)},
      rows_{std::move(rows)},
      row_((columns_.end() - columns_.begin()) * kPixelBytes),
      narrowed_((rows_.end() - rows_.begin()) * columns_.size() * kPixelBytes) {}

PixelRange Resampler::range() const {
  return {.left = columns_.begin(),
          .top = rows_.begin(),
          .right = columns_.end(),
          .bottom = rows_.end()};
}

void Resampler::add(const std::uint8_t* row) {
  um::expects(added_ < rows_.end() - rows_.begin(), "a row that is needed");
  widen(row, row_);
  narrow(columns_, row_, &narrowed_[added_ * columns_.size() * kPixelBytes]);
  ++added_;
}

std::vector<std::uint8_t> Resampler::result() const {
  um::expects(added_ == rows_.end() - rows_.begin(), "all rows");
  const std::size_t stride = columns_.size() * kPixelBytes;
  std::vector<std::uint8_t> pixels(rows_.size() * stride);
  std::vector<std::int32_t> sums(stride);
  for (std::size_t y = 0; y < rows_.size(); ++y) {
    std::ranges::fill(sums, kHalf);
    const std::uint8_t* row = &narrowed_[rows_.first(y) * stride];
    for (const std::int32_t weight : rows_.weights(y)) {
      add_weighted(row, weight, sums);
      row += stride;
    }
    to_bytes(sums, &pixels[y * stride]);
  }
  return pixels;
}

}  // namespace spillway
