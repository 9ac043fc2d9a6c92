#include "src/plan/budget.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "src/plan/percent.h"
#include "um/error.h"

namespace spillway {
namespace {

using um::Bytes;

constexpr Bytes kLargest{1ULL << 62U};  // more than any memory; the sum of two is a number

Bytes scale(Bytes size, double factor) {
  const double scaled = std::ceil(static_cast<double>(size.count()) * factor);
  if (scaled >= static_cast<double>(kLargest.count())) return kLargest;
  return Bytes{static_cast<std::uint64_t>(scaled)};
}

}  // namespace

Budget Budget::parse(std::string_view text) {
  if (text == "auto") return Budget{Automatic{}};
  if (text == "min") return Budget{AboveSmallest{0}};
  if (text.starts_with("min+")) {
    if (const auto fraction = parse_percent(text.substr(4)))
      return Budget{AboveSmallest{*fraction}};
  } else if (const auto fraction = parse_percent(text); fraction && *fraction > 0) {
    return Budget{OfNeed{*fraction}};
  } else if (const auto size = um::parse_bytes(text); size && *size > Bytes{}) {
    return Budget{Exact{*size}};
  }
  throw um::Error{
      "'" + std::string{text} +
      "' is no budget: give bytes (512MiB, 2GB), a part of the resident need (40%), the "
      "smallest feasible budget or a way from there to the resident need (min, min+20%), "
      "or auto"};
}

Bytes Budget::resolve(const prefetch::NearNeed& need, Bytes available) const {
  if (const auto* exact = std::get_if<Exact>(&amount_)) return exact->size;
  if (const auto* part = std::get_if<OfNeed>(&amount_)) return scale(need.resident, part->fraction);
  if (const auto* above = std::get_if<AboveSmallest>(&amount_)) {
    return need.smallest + scale(need.resident - need.smallest, above->fraction);
  }
  return std::min(need.peak_with_workspace, scale(available, 0.9));
}

}  // namespace spillway
