#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/ops/backend.h"
#include "src/ops/tensor.h"

namespace spillway {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
/// SC'11). Returns four random words that depend only on counter and key.
[[nodiscard]] constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32U) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32U) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

/// Which elements a dropout layer drops in a step: the same in every layout and on every device.
/// One call of philox serves four channels of a pixel. Its counter consists of the position of the
/// four in the whole batch, (N, H, W, C / 4), the step and the stream. A plain value that device
/// code can use, too.
struct DropoutMask {
  /// Channels that share one call of philox: 0 to 3, 4 to 7, and so on.
  static constexpr std::size_t kGroup = 4;

  std::uint64_t threshold;  ///< an element is dropped if its word is smaller
  float scale;              ///< factor of the elements that are kept
  std::uint32_t stream;
  PhiloxKey key;
  std::uint64_t step;
  std::uint64_t groups;       ///< per pixel
  std::uint64_t first_pixel;  ///< index of the tensor's first pixel in the whole batch

  /// Returns one word per channel of `group` of `pixel`, which is counted over the whole tensor.
  [[nodiscard]] constexpr PhiloxCounter words(std::uint64_t pixel, std::uint64_t group) const {
    const std::uint64_t place = (first_pixel + pixel) * groups + group;
    // Places and steps beyond 2^32 would share words; neither occurs.
    return philox(
        {static_cast<std::uint32_t>(place),
         static_cast<std::uint32_t>(place >> 32U) ^ static_cast<std::uint32_t>(step >> 32U),
         static_cast<std::uint32_t>(step), stream},
        key);
  }
  /// Returns the result for element `x` with random word `word`.
  [[nodiscard]] constexpr float apply(std::uint32_t word, float x) const {
    return word < threshold ? 0.F : x * scale;
  }
};

/// Returns the mask of an attention's weights in the step of `context`. A pixel is a query,
/// (sample, head, token) of the tensor, and its channels are the keys.
[[nodiscard]] DropoutMask attention_mask(const AttentionGeometry& attention,
                                         const StepContext& context);

/// Returns the mask of a layer on images of `image`, from number `first_sample` of the rank's batch
/// on, in the step of `context`.
[[nodiscard]] DropoutMask dropout_mask(const nets::Shape& image, float probability,
                                       std::uint32_t stream, std::size_t first_sample,
                                       const StepContext& context);

}  // namespace spillway
