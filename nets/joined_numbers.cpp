#include "nets/joined_numbers.h"

#include <charconv>
#include <system_error>

namespace spillway::nets {

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
