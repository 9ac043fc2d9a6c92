#pragma once

#include <cstddef>
#include <cstdint>

#include "nets/network.h"
#include "src/ops/backend.h"

namespace spillway::test {

/// So many images in [-1, 1] of the network's size, which differ from each other and from step to
/// step, or tokens, and labels that take turns.
[[nodiscard]] inline Batch drawn_batch(const nets::Network& network, std::size_t size,
                                       std::uint64_t step) {
  Batch batch;
  const bool has_tokens = network.input().form == nets::Form::kTokens;
  for (std::size_t i = 0; i < size * network.input().elements(); ++i) {
    const std::size_t drawn = i * 7919 + step * 31;
    batch.images.push_back(has_tokens ? static_cast<float>(drawn % network.classes())
                                      : static_cast<float>(drawn % 257) / 128 - 1);
  }
  const auto [height, width] = network.labels();
  for (std::size_t n = 0; n < size * height * width; ++n) {
    batch.labels.push_back(static_cast<std::int32_t>((n + step) % network.classes()));
  }
  return batch;
}

}  // namespace spillway::test
