#include "src/ops/dropout_mask.h"

#include <cmath>

namespace spillway {

DropoutMask dropout_mask(const nets::Shape& image, float probability, std::uint32_t stream,
                         std::size_t first_sample, const StepContext& context) {
  return {.threshold = static_cast<std::uint64_t>(std::ceil(std::ldexp(probability, 32))),
          .scale = probability < 1.F ? 1.F / (1.F - probability) : 0.F,
          .stream = stream,
          .key = {static_cast<std::uint32_t>(context.seed),
                  static_cast<std::uint32_t>(context.seed >> 32U)},
          .step = context.step,
          .groups = (image.channels + DropoutMask::kGroup - 1) / DropoutMask::kGroup,
          .first_pixel = (context.samples_before + first_sample) * image.height * image.width};
}

DropoutMask attention_mask(const AttentionGeometry& attention, const StepContext& context) {
  const std::size_t tokens = attention.x.image.height;
  return dropout_mask({.channels = tokens, .height = attention.heads.heads, .width = tokens},
                      attention.dropout, attention.stream, attention.first_sample, context);
}

}  // namespace spillway
