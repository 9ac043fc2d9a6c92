#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::nets {

/// Return the product or the sum of `numbers`, saturated at the largest size_t, so that sizes given
/// by a user can be compared with a limit.
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

/// The meaning of a shape's elements.
enum class Form : std::uint8_t {
  kImage,     ///< (C, H, W)
  kSequence,  ///< `height` tokens of `channels` elements, in order; the width is 1
  kTokens     ///< `height` token ids; channels and width are 1
};

/// The shape of one sample within a network: (C, H, W). Vectors are (C, 1, 1). Text networks use
/// sequences of tokens.
struct Shape {
  std::size_t channels = 0;
  std::size_t height = 1;
  std::size_t width = 1;
  Form form = Form::kImage;

  /// Saturates at the largest size_t.
  [[nodiscard]] constexpr std::size_t elements() const {
    return saturated_product({channels, height, width});
  }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};

/// Returns the shape of `tokens` tokens of `width` elements each.
[[nodiscard]] constexpr Shape sequence(std::size_t tokens, std::size_t width) {
  return {.channels = width, .height = tokens, .width = 1, .form = Form::kSequence};
}

/// Returns the shape of `count` token ids.
[[nodiscard]] constexpr Shape tokens(std::size_t count) {
  return {.channels = 1, .height = count, .width = 1, .form = Form::kTokens};
}

/// "64x56x56", "256 tokens of 768", "256 tokens"
[[nodiscard]] std::string to_string(const Shape& shape);

/// A vertical and a horizontal number: a kernel's size, a stride, a padding.
struct Extent {
  std::size_t height = 1;
  std::size_t width = 1;
  friend constexpr bool operator==(const Extent&, const Extent&) = default;
};

/// Returns the same number in both directions.
[[nodiscard]] constexpr Extent square(std::size_t side) { return {side, side}; }

/// The largest sizes that flags, network names and files may give. Larger sizes are mistakes, and
/// results computed from these sizes fit in 64 bits.

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

/// Returns the extent that a dilated kernel covers.
[[nodiscard]] Extent dilated(const Extent& kernel, const Extent& dilation);

/// Returns the positions of a window over `size` elements and the padding on both sides; 0 when the
/// window is larger than these.
[[nodiscard]] std::size_t positions(std::size_t size, const Window& window);

/// As above, plus one for a partial window at the end, unless it would start behind the elements.
[[nodiscard]] std::size_t positions_rounded_up(std::size_t size, const Window& window);

/// Returns the elements, without the padding, that `count` positions of a window cover, plus
/// `more`; 0 if the padding covers all.
[[nodiscard]] std::size_t spread(std::size_t count, const Window& window, std::size_t more);

/// Parses whole numbers separated by `between`: "3x224x224" or "6,32,100,6". Returns nullopt when
/// `text` is anything else or a number exceeds `largest`.
[[nodiscard]] std::optional<std::vector<std::size_t>> joined_numbers(std::string_view text,
                                                                     char between,
                                                                     std::size_t largest);

}  // namespace spillway::nets
