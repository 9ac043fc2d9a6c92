#include "prefetch/placement/placed_step.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Computes how far a plan can proceed while one run or one offload does not end.
class Withheld {
 public:
  explicit Withheld(const Plan& plan)
      : plan_{plan},
        without_run_{furthest(&Progress::runs, plan.runs.size())},
        without_offload_{furthest(&Progress::offloads, plan.offloads.size())} {}

  // Returns true when both may be near at once. An interval that spans steps ends and begins
  // again.
  [[nodiscard]] bool may_meet(const NearInterval& one, const NearInterval& other) const {
    if (one.spans_steps && other.spans_steps) return true;  // between steps
    const bool is_one_first = may_begin_beside(other, one);
    const bool is_other_first = may_begin_beside(one, other);
    return one.spans_steps || other.spans_steps ? is_one_first || is_other_first
                                                : is_one_first && is_other_first;
  }

  // Returns true when `other` can begin before `interval` has ended.
  [[nodiscard]] bool may_begin_beside(const NearInterval& other,
                                      const NearInterval& interval) const {
    if (interval.spans_steps && !interval.is_offloaded) return true;
    if (!interval.is_offloaded) return can_begin(other, without_run_[interval.last]);
    const std::uint32_t runs = plan_.offloads[interval.last].frees_after();
    return can_begin(other, without_offload_[interval.last]) ||
           (runs > 0 && can_begin(other, without_run_[runs - 1]));
  }

 private:
  // Returns for each entry of the queue counted by `held` the furthest progress while it does not
  // end.
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

  // Advances `now` as far as possible, at most to `max`.
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

  // A prefetch that can begin also ends, since prefetches are not withheld.
  [[nodiscard]] bool can_begin(const NearInterval& interval, const Progress& now) const {
    if (interval.is_prefetched) return now.prefetches > interval.first;
    return now.runs > interval.first ||
           (now.runs == interval.first && now.reaches(plan_.runs[interval.first].after));
  }

  const Plan& plan_;
  std::vector<Progress> without_run_;
  std::vector<Progress> without_offload_;
};

// Scans the addresses from low to high. The near intervals at one address must follow one another;
// the few that span steps lie in the gaps of others. Following is transitive: what cannot begin
// before another has begun cannot begin before the condition of that other. Each interval is
// therefore compared only with those on the path to its place in the chain.
class SharedAddresses {
 public:
  using Pair = std::pair<std::size_t, std::size_t>;  // indices, lower address first

  SharedAddresses(const Plan& plan, std::span<const NearInterval> intervals,
                  const IntervalPlacement& placement)
      : withheld_{plan}, intervals_{intervals}, placement_{placement} {}

  // Returns two that share addresses and may be concurrent, if there are any.
  std::optional<Pair> find() {
    if (const auto pair = find_beside_spanning()) return pair;
    const auto offset = [&](std::size_t i) { return placement_.offsets[i]; };
    const auto end = [&](std::size_t i) { return offset(i) + intervals_[i].size; };
    std::vector<std::size_t> by_offset;
    for (std::size_t i = 0; i < intervals_.size(); ++i) {
      if (!intervals_[i].spans_steps) by_offset.push_back(i);
    }
    std::vector<std::size_t> by_end = by_offset;
    std::ranges::stable_sort(by_offset, {}, offset);
    std::ranges::stable_sort(by_end, {}, end);
    std::vector<Chain::iterator> places(intervals_.size());
    auto left = by_end.begin();
    for (const std::size_t next : by_offset) {
      for (; end(*left) <= offset(next); ++left) chain_.erase(places[*left]);
      newcomer_ = next;
      places[next] = chain_.insert(next).first;
      if (met_) return Pair{*met_, next};
    }
    return std::nullopt;
  }

 private:
  // Checks each pair with an interval that spans steps.
  [[nodiscard]] std::optional<Pair> find_beside_spanning() const {
    const auto overlap = [&](std::size_t one, std::size_t other) {
      return placement_.offsets[one] < placement_.offsets[other] + intervals_[other].size &&
             placement_.offsets[other] < placement_.offsets[one] + intervals_[one].size;
    };
    for (std::size_t one = 0; one < intervals_.size(); ++one) {
      if (!intervals_[one].spans_steps) continue;
      for (std::size_t other = 0; other < intervals_.size(); ++other) {
        if (other == one || !overlap(one, other)) continue;
        if (!withheld_.may_meet(intervals_[one], intervals_[other])) continue;
        const auto place = [&](std::size_t i) { return std::pair{placement_.offsets[i], i}; };
        return place(one) < place(other) ? Pair{one, other} : Pair{other, one};
      }
    }
    return std::nullopt;
  }

  // Orders two intervals that cannot be concurrent by time.
  struct ComesBefore {
    SharedAddresses* owner;
    bool operator()(std::size_t one, std::size_t other) const {
      return owner->comes_before(one, other);
    }
  };
  using Chain = std::set<std::size_t, ComesBefore>;

  bool comes_before(std::size_t one, std::size_t other) {
    const NearInterval& a = intervals_[one];
    const NearInterval& b = intervals_[other];
    if (!withheld_.may_begin_beside(b, a)) return true;
    const bool is_after = !withheld_.may_begin_beside(a, b);
    if (!is_after && !met_) met_ = one == newcomer_ ? other : one;
    return false;
  }

  Withheld withheld_;
  std::span<const NearInterval> intervals_;
  const IntervalPlacement& placement_;
  std::size_t newcomer_ = 0;
  std::optional<std::size_t> met_;  // in the chain, possibly concurrent with the newcomer
  Chain chain_{ComesBefore{this}};  // intervals at the current address
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

// Returns how many of the sorted `intervals` begin before entry `first` of the queue.
std::size_t begun_before(std::span<const NearInterval> intervals, bool is_prefetched,
                         std::uint32_t first) {
  const auto is_before = [&](const NearInterval& interval) {
    return interval.is_prefetched != is_prefetched ? is_prefetched : interval.first < first;
  };
  return static_cast<std::size_t>(std::ranges::partition_point(intervals, is_before) -
                                  intervals.begin());
}

}  // namespace

std::optional<Violation> check_placement(const TaskGraph& graph, const Plan& plan,
                                         std::span<const NearInterval> intervals,
                                         const IntervalPlacement& placement) {
  if (auto violation = check_bounds(graph, plan, intervals, placement)) return violation;
  const auto sharing = SharedAddresses{plan, intervals, placement}.find();
  if (!sharing) return std::nullopt;
  const auto [one, other] = *sharing;
  return Violation{name_of(intervals[one], graph, plan) + " and " +
                   name_of(intervals[other], graph, plan) +
                   " share addresses and may be near at the same time"};
}

PlacedStep::Range PlacedStep::begun_by_run(Position position) const {
  return {.begin = begun_before(intervals, false, position),
          .end = begun_before(intervals, false, position + 1)};
}

std::size_t PlacedStep::begun_by_prefetch(std::uint32_t index) const {
  return begun_before(intervals, true, index);
}

std::size_t PlacedStep::between_steps(DataId data) const {
  const auto found = std::ranges::find_if(intervals, [&](const NearInterval& interval) {
    return interval.spans_steps && interval.data == data;
  });
  um::expects(found != intervals.end(), "state that is near between steps");
  return static_cast<std::size_t>(found - intervals.begin());
}

um::Bytes PlacedStep::size_between_steps() const {
  um::Bytes size;
  for (const NearInterval& interval : intervals) {
    if (interval.spans_steps) size += interval.size;
  }
  return size;
}

PlacedStep place_step(const TaskGraph& graph, const Plan& plan, um::Bytes room) {
  PlacedStep step{.intervals = find_near_intervals(graph, plan)};
  step.placement = place_intervals(plan, step.intervals, room);
  step.fits = step.placement.extent <= room;
  const auto violation = check_placement(graph, plan, step.intervals, step.placement);
  um::expects(!violation, "near intervals that may be at one time have places of their own");
  return step;
}

std::optional<ArenaUse> arena_use(const TaskGraph& graph, const Plan& plan) {
  if (plan.residency == Residency::kOnDemand || !moves_whole_blocks(plan, graph)) {
    return std::nullopt;
  }
  const Bytes pinned = BlockSizes{graph, plan.page}.pinned();
  const Bytes room = um::saturating_difference(plan.budget, pinned);
  return ArenaUse{.extent = place_step(graph, plan, room).placement.extent, .room = room};
}

}  // namespace spillway::prefetch
