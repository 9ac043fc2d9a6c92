#include "um/bandwidth.h"

#include "um/amount.h"

namespace spillway::um {

std::optional<Bandwidth> parse_bandwidth(std::string_view text) {
  if (!text.ends_with("/s")) return std::nullopt;
  text.remove_suffix(2);
  const std::optional<double> amount = parse_amount(text);
  if (!amount || *amount <= 0) return std::nullopt;
  return Bandwidth{*amount};
}

}  // namespace spillway::um
