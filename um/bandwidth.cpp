#include "um/bandwidth.h"

#include <cmath>

namespace spillway::um {
namespace {

constexpr double kSlowest = 1000;  // 9 TB then take 292 years, the most that Nanoseconds hold

}  // namespace

std::optional<Bandwidth> parse_bandwidth(std::string_view text) {
  if (!text.ends_with("/s")) return std::nullopt;
  text.remove_suffix(2);
  const std::optional<double> amount = parse_amount(text);
  if (!amount || *amount < kSlowest || !std::isfinite(*amount)) return std::nullopt;
  return Bandwidth{*amount};
}

}  // namespace spillway::um
