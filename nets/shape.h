#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "nets/saturated.h"

namespace spillway::nets {

/// What the numbers of a shape are.
enum class Form : std::uint8_t {
  kImage,     ///< (C, H, W)
  kSequence,  ///< `height` tokens of `channels` numbers each, token after token; the width is 1
  kTokens     ///< numbers in a vocabulary, of `height` tokens; channels and width are 1
};

/// What one image is at some point of a network: (C, H, W). Vectors are (C, 1, 1). In networks of
/// texts it is a sequence of tokens.
struct Shape {
  std::size_t channels = 0;
  std::size_t height = 1;
  std::size_t width = 1;
  Form form = Form::kImage;

  /// The largest size_t where there are more.
  [[nodiscard]] constexpr std::size_t elements() const {
    return saturated_product({channels, height, width});
  }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};

/// So many tokens of `width` numbers each.
[[nodiscard]] constexpr Shape sequence(std::size_t tokens, std::size_t width) {
  return {.channels = width, .height = tokens, .width = 1, .form = Form::kSequence};
}

/// So many tokens, each a number in a vocabulary.
[[nodiscard]] constexpr Shape tokens(std::size_t count) {
  return {.channels = 1, .height = count, .width = 1, .form = Form::kTokens};
}

/// "64x56x56", "256 tokens of 768", "256 tokens"
[[nodiscard]] std::string to_string(const Shape& shape);

/// Two numbers, one down and one across an image: a kernel's size, a stride, a padding.
struct Extent {
  std::size_t height = 1;
  std::size_t width = 1;
  friend constexpr bool operator==(const Extent&, const Extent&) = default;
};

/// The same number both ways.
[[nodiscard]] constexpr Extent square(std::size_t side) { return {side, side}; }

}  // namespace spillway::nets
