#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::nets {

/// The product and the sum of `numbers`, or the largest size_t where they are larger than that:
/// what a user's sizes come to can be compared with a limit, whatever they are.
[[nodiscard]] constexpr std::size_t saturated_product(std::initializer_list<std::size_t> numbers) {
  std::size_t product = 1;
  bool is_too_large = false;
  for (const std::size_t number : numbers) {
    if (number == 0) return 0;
    is_too_large = __builtin_mul_overflow(product, number, &product) || is_too_large;
  }
  return is_too_large ? SIZE_MAX : product;
}

[[nodiscard]] constexpr std::size_t saturated_sum(std::initializer_list<std::size_t> numbers) {
  std::size_t sum = 0;
  for (const std::size_t number : numbers) {
    if (__builtin_add_overflow(sum, number, &sum)) return SIZE_MAX;
  }
  return sum;
}

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

/// The largest sizes that flags and the names of networks may ask for, and files say: larger ones
/// are mistakes, and what is computed from these fits into 64 bits.

/// Channels, features, classes, and tokens of a vocabulary.
inline constexpr std::size_t kLargestWidth = 1U << 20U;
/// A side of an image, a kernel, a stride or a padding.
inline constexpr std::size_t kLargestSide = 1U << 14U;
/// Tokens of a text.
inline constexpr std::size_t kLongestSequence = 1U << 20U;
/// Layers of a network.
inline constexpr std::size_t kMaxLayers = 100'000;

/// A window along one side of an image.
struct Window {
  std::size_t kernel;
  std::size_t stride;
  std::size_t padding;
};

/// What a kernel covers when its neighbours are apart.
[[nodiscard]] Extent dilated(const Extent& kernel, const Extent& dilation);

/// Positions of a window that moves over `size` numbers and the padding on both sides; 0 when the
/// window is larger than that.
[[nodiscard]] std::size_t positions(std::size_t size, const Window& window);

/// The same, and one more for a rest that fills no window, unless that one would start behind the
/// numbers.
[[nodiscard]] std::size_t positions_rounded_up(std::size_t size, const Window& window);

/// Numbers that so many positions of a window cover without the padding, and `more`; 0 when the
/// padding is all of it.
[[nodiscard]] std::size_t spread(std::size_t count, const Window& window, std::size_t more);

/// The whole numbers of "3x224x224" or "6,32,100,6", with `between` between them; nothing when
/// `text` is anything else, or a number is larger than `largest`.
[[nodiscard]] std::optional<std::vector<std::size_t>> joined_numbers(std::string_view text,
                                                                     char between,
                                                                     std::size_t largest);

}  // namespace spillway::nets
