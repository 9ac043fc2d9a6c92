#include "prefetch/placement/check_placement.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "prefetch/block_sizes.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// How far a plan can come although some run, or some offload, does not end.
class Withheld {
 public:
  explicit Withheld(const Plan& plan)
      : plan_{plan},
        without_run_{furthest(&Progress::runs, plan.runs.size())},
        without_offload_{furthest(&Progress::offloads, plan.offloads.size())} {}

  /// True when both may be near at one time. One that spans steps ends, and begins again.
  [[nodiscard]] bool may_meet(const NearInterval& one, const NearInterval& other) const {
    if (one.spans_steps && other.spans_steps) return true;  // between steps
    const bool is_one_first = may_begin_beside(other, one);
    const bool is_other_first = may_begin_beside(one, other);
    return one.spans_steps || other.spans_steps ? is_one_first || is_other_first
                                                : is_one_first && is_other_first;
  }

 private:
  // True when `other` can begin while `interval` has not ended.
  [[nodiscard]] bool may_begin_beside(const NearInterval& other,
                                      const NearInterval& interval) const {
    if (interval.spans_steps && !interval.is_offloaded) return true;
    if (!interval.is_offloaded) return can_begin(other, without_run_[interval.last]);
    const std::uint32_t runs = plan_.offloads[interval.last].frees_after();
    return can_begin(other, without_offload_[interval.last]) ||
           (runs > 0 && can_begin(other, without_run_[runs - 1]));
  }

  // For each entry of the queue that `held` counts: how far all three come while it does not end.
  [[nodiscard]] std::vector<Progress> furthest(std::uint32_t Progress::*held,
                                               std::size_t entries) const {
    std::vector<Progress> result;
    Progress now;
    for (std::uint32_t i = 0; i < entries; ++i) {
      Progress max{.runs = size(plan_.runs),
                   .offloads = size(plan_.offloads),
                   .prefetches = size(plan_.prefetches)};
      max.*held = i;
      go_on(now, max);
      result.push_back(now);
    }
    return result;
  }

  template <typename Entry>
  static std::uint32_t size(const std::vector<Entry>& queue) {
    return static_cast<std::uint32_t>(queue.size());
  }

  // Ends whatever can end, up to `most`.
  void go_on(Progress& now, const Progress& max) const {
    const auto advance = [&](const auto& queue, std::uint32_t Progress::*count) {
      const std::uint32_t before = now.*count;
      while (now.*count < max.*count && now.reaches(queue[now.*count].after)) ++(now.*count);
      return now.*count != before;
    };
    bool moved = true;
    while (moved) {
      moved = advance(plan_.runs, &Progress::runs);
      moved = advance(plan_.offloads, &Progress::offloads) || moved;
      moved = advance(plan_.prefetches, &Progress::prefetches) || moved;
    }
  }

  // No prefetch is withheld, so one that can begin has ended.
  [[nodiscard]] bool can_begin(const NearInterval& interval, const Progress& now) const {
    if (interval.is_prefetched) return now.prefetches > interval.first;
    return now.runs > interval.first ||
           (now.runs == interval.first && now.reaches(plan_.runs[interval.first].after));
  }

  const Plan& plan_;
  std::vector<Progress> without_run_;
  std::vector<Progress> without_offload_;
};

std::string name_of(const NearInterval& interval, const TaskGraph& graph, const Plan& plan) {
  if (interval.is_workspace)
    return "the workspace of " + graph[plan.runs[interval.first].task].name;
  return graph[interval.data].name;
}

std::optional<Violation> check_bounds(const TaskGraph& graph, const Plan& plan,
                                      std::span<const NearInterval> intervals,
                                      const IntervalPlacement& placement) {
  if (placement.offsets.size() != intervals.size()) {
    return Violation{"the placement has " + std::to_string(placement.offsets.size()) +
                     " offsets for " + std::to_string(intervals.size()) + " near intervals"};
  }
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const Bytes offset = placement.offsets[i];
    if (offset.count() % kSmallestPage.count() != 0) {
      return Violation{name_of(intervals[i], graph, plan) + " does not lie at a multiple of 4 KiB"};
    }
    if (offset + intervals[i].size > placement.extent) {
      return Violation{name_of(intervals[i], graph, plan) +
                       " reaches beyond the placement's extent"};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Violation> check_placement(const TaskGraph& graph, const Plan& plan,
                                         std::span<const NearInterval> intervals,
                                         const IntervalPlacement& placement) {
  if (auto violation = check_bounds(graph, plan, intervals, placement)) return violation;
  const Withheld withheld{plan};
  std::vector<std::size_t> by_offset(intervals.size());
  std::iota(by_offset.begin(), by_offset.end(), 0U);
  std::ranges::stable_sort(by_offset, {}, [&](std::size_t i) { return placement.offsets[i]; });
  for (std::size_t i = 0; i < by_offset.size(); ++i) {
    const NearInterval& interval = intervals[by_offset[i]];
    const Bytes end = placement.offsets[by_offset[i]] + interval.size;
    for (std::size_t j = i + 1; j < by_offset.size(); ++j) {
      if (placement.offsets[by_offset[j]] >= end) break;
      const NearInterval& other = intervals[by_offset[j]];
      if (!withheld.may_meet(interval, other)) continue;
      return Violation{name_of(interval, graph, plan) + " and " + name_of(other, graph, plan) +
                       " share addresses and may be near at the same time"};
    }
  }
  return std::nullopt;
}

}  // namespace spillway::prefetch
