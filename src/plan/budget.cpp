#include "src/plan/budget.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

#include "prefetch/block_sizes.h"
#include "prefetch/planner.h"
#include "prefetch/planners/smallest_budget.h"
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

std::optional<double> parse_percent(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  constexpr double kMax = 1e6;  // more than any use
  double percent = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, percent, std::chars_format::fixed);
  if (status != std::errc{} || stop != end || !(percent >= 0 && percent <= kMax)) {
    return std::nullopt;
  }
  return percent / 100;
}

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
    // State that moves in whole pages may need more than state that stays near.
    return need.smallest +
           scale(um::saturating_difference(need.resident, need.smallest), above->fraction);
  }
  return std::min(need.peak_with_workspace, scale(available, 0.9));
}

BudgetTooSmall::BudgetTooSmall(const prefetch::TaskGraph& graph, prefetch::TaskId task,
                               Bytes budget, Bytes smallest, const std::string& where)
    : Error{where + to_string(prefetch::Infeasible{.task = task, .smallest_budget = smallest},
                              graph, budget)},
      graph_{&graph},
      task_{task},
      budget_{budget},
      smallest_{smallest} {}

Bytes smallest_run_budget(const StepToPlan& step, const BudgetTooSmall& refusal,
                          const std::function<bool(Bytes)>& works) {
  const Bytes pinned = prefetch::BlockSizes{step.graph, step.page}.pinned();
  return prefetch::find_smallest({.always = step.elsewhere + pinned,
                                  .page = step.page,
                                  .refused = refusal.budget(),
                                  .claimed = refusal.smallest()},
                                 works)
      .value_or(refusal.smallest());
}

std::optional<BudgetTooSmall> too_small(const StepToPlan& step, Bytes budget) {
  if (budget >= step.need.smallest) return std::nullopt;
  return BudgetTooSmall{step.graph, step.need.largest_task, budget, step.need.smallest};
}

}  // namespace spillway
