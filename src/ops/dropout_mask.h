#pragma once

#include <cstddef>
#include <cstdint>

#include "src/ops/backend.h"
#include "src/ops/philox.h"
#include "src/ops/tensor.h"

namespace spillway {

/// Which elements a dropout layer drops in a step: the same ones in every layout and on every
/// device. One call of philox serves four channels of a pixel; its counter is the place of the four
/// in (N, H, W, C / 4) of the whole batch, the step and the stream. A plain value, which device
/// code takes too.
struct DropoutMask {
  /// Channels that draw together: 0 to 3, 4 to 7, and so on.
  static constexpr std::size_t kGroup = 4;

  std::uint64_t threshold;  ///< words below it drop their element
  float scale;              ///< of the elements that are kept
  std::uint32_t stream;
  PhiloxKey key;
  std::uint64_t step;
  std::uint64_t groups;       ///< of a pixel
  std::uint64_t first_pixel;  ///< of the tensor in the whole batch, of which it may be a part

  /// One word for each channel of `group` of `pixel`, which counts over the whole tensor.
  [[nodiscard]] constexpr PhiloxCounter words(std::uint64_t pixel, std::uint64_t group) const {
    const std::uint64_t place = (first_pixel + pixel) * groups + group;
    // Places beyond 2^32 and steps beyond 2^32 share a word: neither occurs.
    return philox(
        {static_cast<std::uint32_t>(place),
         static_cast<std::uint32_t>(place >> 32U) ^ static_cast<std::uint32_t>(step >> 32U),
         static_cast<std::uint32_t>(step), stream},
        key);
  }
  /// What an element that drew `word` becomes.
  [[nodiscard]] constexpr float apply(std::uint32_t word, float x) const {
    return word < threshold ? 0.F : x * scale;
  }
};

/// Of an attention's weights, in the step of `context`: a pixel is a query, (sample, head, token)
/// of the tensor, and its channels are the keys.
[[nodiscard]] DropoutMask attention_mask(const AttentionGeometry& attention,
                                         const StepContext& context);

/// Of a layer on images of `image` that drops with `probability`, in the step of `context`.
[[nodiscard]] DropoutMask dropout_mask(const nets::Shape& image, float probability,
                                       std::uint32_t stream, const StepContext& context);

}  // namespace spillway
