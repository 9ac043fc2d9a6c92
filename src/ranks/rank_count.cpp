#include "src/ranks/rank_count.h"

#include <charconv>
#include <system_error>

namespace spillway {

std::optional<std::size_t> parse_rank_count(std::string_view text) {
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  if (status != std::errc{} || stop != end) return std::nullopt;
  return number;
}

}  // namespace spillway
