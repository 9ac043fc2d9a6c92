#include "nets/shape.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace spillway::nets {

std::string to_string(const Shape& shape) {
  if (shape.form == Form::kTokens) return std::to_string(shape.height) + " tokens";
  if (shape.form == Form::kSequence) {
    return std::to_string(shape.height) + " tokens of " + std::to_string(shape.channels);
  }
  return std::to_string(shape.channels) + "x" + std::to_string(shape.height) + "x" +
         std::to_string(shape.width);
}

Extent dilated(const Extent& kernel, const Extent& dilation) {
  return {.height = (kernel.height - 1) * dilation.height + 1,
          .width = (kernel.width - 1) * dilation.width + 1};
}

std::size_t positions(std::size_t size, const Window& window) {
  const std::size_t padded = size + 2 * window.padding;
  return padded < window.kernel ? 0 : (padded - window.kernel) / window.stride + 1;
}

std::size_t positions_rounded_up(std::size_t size, const Window& window) {
  const std::size_t full = positions(size, window);
  const std::size_t padded = size + 2 * window.padding;
  const bool has_rest = full > 0 && (full - 1) * window.stride + window.kernel < padded;
  return has_rest && full * window.stride < size + window.padding ? full + 1 : full;
}

std::size_t spread(std::size_t count, const Window& window, std::size_t more) {
  const std::size_t covered = (count - 1) * window.stride + window.kernel + more;
  return covered - std::min(covered, 2 * window.padding);
}

std::optional<std::vector<std::size_t>> joined_numbers(std::string_view text, char between,
                                                       std::size_t largest) {
  std::vector<std::size_t> numbers;
  while (true) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || number > largest) return std::nullopt;
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return numbers;
    if (!text.starts_with(between)) return std::nullopt;
    text.remove_prefix(1);
  }
}

}  // namespace spillway::nets
