#include "um/bytes.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "um/amount.h"

namespace spillway::um {

std::string to_string(Bytes size) {
  static constexpr std::array<const char*, 5> kNames{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(size.count());
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  const int decimals = unit == 0 || value >= 100 ? 0 : (value >= 10 ? 1 : 2);
  std::snprintf(text.data(), text.size(), "%.*f %s", decimals, value, kNames.at(unit));
  return text.data();
}

std::optional<Bytes> parse_bytes(std::string_view text) {
  const std::optional<double> amount = parse_amount(text);
  if (!amount || *amount >= 18446744073709549568.0) return std::nullopt;
  return Bytes{static_cast<std::uint64_t>(std::round(*amount))};
}

}  // namespace spillway::um
