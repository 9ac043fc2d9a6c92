#include "prefetch/check_placement.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "prefetch/occupancy.h"

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

  /// True when `other` can begin while `stay` has not ended.
  [[nodiscard]] bool may_begin_beside(const Stay& other, const Stay& stay) const {
    if (!stay.is_offloaded) return can_begin(other, without_run_[stay.last]);
    const std::uint32_t runs = plan_.offloads[stay.last].frees_after();
    return can_begin(other, without_offload_[stay.last]) ||
           (runs > 0 && can_begin(other, without_run_[runs - 1]));
  }

 private:
  // For each entry of the queue that `held` counts: how far all three come while it does not end.
  [[nodiscard]] std::vector<Progress> furthest(std::uint32_t Progress::*held,
                                               std::size_t entries) const {
    std::vector<Progress> result;
    Progress now;
    for (std::uint32_t i = 0; i < entries; ++i) {
      Progress most{.runs = size(plan_.runs),
                    .offloads = size(plan_.offloads),
                    .prefetches = size(plan_.prefetches)};
      most.*held = i;
      go_on(now, most);
      result.push_back(now);
    }
    return result;
  }

  template <typename Entry>
  static std::uint32_t size(const std::vector<Entry>& queue) {
    return static_cast<std::uint32_t>(queue.size());
  }

  // Ends whatever can end, up to `most`.
  void go_on(Progress& now, const Progress& most) const {
    const auto advance = [&](const auto& queue, std::uint32_t Progress::*count) {
      const std::uint32_t before = now.*count;
      while (now.*count < most.*count && now.reaches(queue[now.*count].after)) ++(now.*count);
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
  [[nodiscard]] bool can_begin(const Stay& stay, const Progress& now) const {
    if (stay.is_prefetched) return now.prefetches > stay.first;
    return now.runs > stay.first ||
           (now.runs == stay.first && now.reaches(plan_.runs[stay.first].after));
  }

  const Plan& plan_;
  std::vector<Progress> without_run_;
  std::vector<Progress> without_offload_;
};

std::string name_of(const Stay& stay, const TaskGraph& graph, const Plan& plan) {
  if (stay.is_workspace) return "the workspace of " + graph[plan.runs[stay.first].task].name;
  return graph[stay.data].name;
}

std::optional<Violation> check_bounds(const TaskGraph& graph, const Plan& plan,
                                      std::span<const Stay> stays, const StayPlacement& placement) {
  if (placement.offsets.size() != stays.size()) {
    return Violation{"the placement has " + std::to_string(placement.offsets.size()) +
                     " offsets for " + std::to_string(stays.size()) + " stays"};
  }
  for (std::size_t i = 0; i < stays.size(); ++i) {
    const Bytes offset = placement.offsets[i];
    if (offset.count() % kSmallestPage.count() != 0) {
      return Violation{name_of(stays[i], graph, plan) + " does not lie at a multiple of 4 KiB"};
    }
    if (offset + stays[i].size > placement.extent) {
      return Violation{name_of(stays[i], graph, plan) + " reaches beyond the placement's extent"};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Violation> check_placement(const TaskGraph& graph, const Plan& plan,
                                         std::span<const Stay> stays,
                                         const StayPlacement& placement) {
  if (auto violation = check_bounds(graph, plan, stays, placement)) return violation;
  const Withheld withheld{plan};
  std::vector<std::size_t> by_offset(stays.size());
  std::iota(by_offset.begin(), by_offset.end(), 0U);
  std::ranges::stable_sort(by_offset, {}, [&](std::size_t i) { return placement.offsets[i]; });
  for (std::size_t i = 0; i < by_offset.size(); ++i) {
    const Stay& stay = stays[by_offset[i]];
    const Bytes end = placement.offsets[by_offset[i]] + stay.size;
    for (std::size_t j = i + 1; j < by_offset.size(); ++j) {
      if (placement.offsets[by_offset[j]] >= end) break;
      const Stay& other = stays[by_offset[j]];
      if (!withheld.may_begin_beside(other, stay) || !withheld.may_begin_beside(stay, other)) {
        continue;
      }
      return Violation{name_of(stay, graph, plan) + " and " + name_of(other, graph, plan) +
                       " share addresses and may be near at the same time"};
    }
  }
  return std::nullopt;
}

}  // namespace spillway::prefetch
