#include "prefetch/placement/interval_placement.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <utility>

#include "prefetch/block_sizes.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

Progress furthest(const Progress& a, const Progress& b) {
  return {.runs = std::max(a.runs, b.runs),
          .offloads = std::max(a.offloads, b.offloads),
          .prefetches = std::max(a.prefetches, b.prefetches)};
}

// Finds what is guaranteed to have ended when each entry of a plan begins, by executing its
// conditions.
class Beginnings {
 public:
  explicit Beginnings(const Plan& plan) {
    Progress now;
    bool moved = true;
    while (moved) {
      moved = advance(plan.runs, now, &Progress::runs, runs_);
      moved = advance(plan.offloads, now, &Progress::offloads, offloads_) || moved;
      moved = advance(plan.prefetches, now, &Progress::prefetches, prefetches_) || moved;
    }
    um::expects(runs_.size() == plan.runs.size() && prefetches_.size() == plan.prefetches.size(),
                "a verified plan does not wait for ever");
  }

  [[nodiscard]] const Progress& of_run(std::size_t run) const { return runs_[run]; }
  [[nodiscard]] const Progress& of_prefetch(std::size_t move) const { return prefetches_[move]; }
  // Returns the first run that begins only after `ended` is reached; the number of runs if none
  // does.
  [[nodiscard]] Position first_run_after(const Progress& ended) const {
    const auto is_before = [&](const Progress& begun) { return !begun.reaches(ended); };
    return static_cast<Position>(std::ranges::partition_point(runs_, is_before) - runs_.begin());
  }

 private:
  template <typename Entry>
  bool advance(const std::vector<Entry>& queue, Progress& now, std::uint32_t Progress::*count,
               std::vector<Progress>& begun) {
    const std::size_t before = begun.size();
    while (begun.size() < queue.size() && now.reaches(queue[begun.size()].after)) {
      Progress sure = implied_by(queue[begun.size()].after);
      if (!begun.empty()) sure = furthest(sure, begun.back());  // begins after its predecessor
      if (count == &Progress::runs) sure.runs = now.runs;       // these have ended, too
      begun.push_back(sure);
      ++(now.*count);
    }
    return begun.size() != before;
  }

  // Adds what the last ended entries had waited for.
  [[nodiscard]] Progress implied_by(const Progress& after) const {
    Progress sure = after;
    if (after.runs > 0) sure = furthest(sure, runs_[after.runs - 1]);
    if (after.offloads > 0) sure = furthest(sure, offloads_[after.offloads - 1]);
    if (after.prefetches > 0) sure = furthest(sure, prefetches_[after.prefetches - 1]);
    return sure;
  }

  std::vector<Progress> runs_;
  std::vector<Progress> offloads_;
  std::vector<Progress> prefetches_;
};

constexpr std::size_t kLeafSize = 64;

template <typename Value>
void insert_at(std::vector<Value>& values, std::size_t place, Value value) {
  values.insert(values.begin() + static_cast<std::ptrdiff_t>(place), value);
}

template <typename Value>
std::vector<Value> split_off(std::vector<Value>& values, std::size_t first) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
  std::vector<Value> rest(begin, values.end());
  values.erase(begin, values.end());
  return rest;
}

using Order = std::vector<std::uint32_t>;  // near intervals in order of placement

template <typename Key>
Order sorted_by(std::size_t count, const Key& key) {
  Order order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater{}, key);
  return order;
}

// Returns by run its rank among all runs by bytes that may be near with it, ascending.
std::vector<std::uint64_t> breadth_ranks(std::span<const NearInterval> intervals,
                                         std::span<const IntervalSpan> spans, std::size_t runs) {
  std::vector<std::uint64_t> breadth(runs + 1);  // first differences: unsigned sums wrap around
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    breadth[spans[i].begin] += intervals[i].size.count();
    breadth[spans[i].end] -= intervals[i].size.count();
  }
  std::partial_sum(breadth.begin(), breadth.end(), breadth.begin());
  const Order widest_first = sorted_by(runs, [&](std::uint32_t run) { return breadth[run]; });
  std::vector<std::uint64_t> ranks(runs);
  for (std::size_t i = 0; i < runs; ++i) ranks[widest_first[i]] = runs - i;
  return ranks;
}

// Finds the maximum of a range of numbers.
class RangeMax {
 public:
  explicit RangeMax(std::vector<std::uint64_t> values) : levels_{std::move(values)} {
    for (std::size_t width = 1; 2 * width <= levels_.front().size(); width *= 2) {
      const std::vector<std::uint64_t>& half = levels_.back();
      std::vector<std::uint64_t> whole(half.size() - width);
      for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = std::max(half[i], half[i + width]);
      levels_.push_back(std::move(whole));
    }
  }

  // Returns the maximum in [begin, end). Requires: begin < end.
  [[nodiscard]] std::uint64_t operator()(std::size_t begin, std::size_t end) const {
    const auto level = static_cast<std::size_t>(std::bit_width(end - begin)) - 1;
    return std::max(levels_[level][begin], levels_[level][end - (std::size_t{1} << level)]);
  }

 private:
  std::vector<std::vector<std::uint64_t>> levels_;  // maxima of 1, 2, 4 ... numbers each
};

std::vector<Order> orders_to_try(std::span<const NearInterval> intervals,
                                 std::span<const IntervalSpan> spans, std::size_t runs) {
  const RangeMax max_rank{breadth_ranks(intervals, spans, runs)};
  const auto size = [&](std::uint32_t i) { return intervals[i].size; };
  const auto length = [&](std::uint32_t i) { return spans[i].end - spans[i].begin; };
  const auto breadth = [&](std::uint32_t i) { return max_rank(spans[i].begin, spans[i].end); };
  std::vector<std::uint64_t> breadths;
  for (std::uint32_t i = 0; i < intervals.size(); ++i) breadths.push_back(breadth(i));
  const auto order = [&](const auto& key) { return sorted_by(intervals.size(), key); };
  return {order([&](std::uint32_t i) {
            return std::pair{size(i), length(i)};
          }),
          order([&](std::uint32_t i) {
            return std::pair{breadths[i], size(i)};
          }),
          order([&](std::uint32_t i) {
            return std::pair{length(i), size(i)};
          }),
          order([&](std::uint32_t i) { return length(i) * size(i); }), order([&](std::uint32_t i) {
            return std::pair{runs - spans[i].begin, length(i)};
          })};
}

// A tried order.
struct Trial {
  Order order;
  IntervalPlacement placement;
  std::uint64_t excess;  // bytes of near intervals beyond the room: finer than the extent
};

// Searches an order in which all near intervals lie within `room`.
class OrderSearch {
 public:
  OrderSearch(std::span<const NearInterval> intervals, std::span<const IntervalSpan> spans,
              Bytes room)
      : intervals_{intervals}, packer_{intervals, spans}, room_{room} {}

  // Tries `orders`, then variations of those with the least excess.
  IntervalPlacement search(std::vector<Order> orders) {
    std::vector<Trial> trials;
    for (Order& order : orders) {
      trials.push_back(attempt(std::move(order)));
      if (best_.extent <= room_) return best_;
    }
    std::ranges::stable_sort(trials, {}, &Trial::excess);
    trials.resize(std::min(trials.size(), kStarts));
    for (Trial& trial : trials) improve(std::move(trial));
    return best_;
  }

 private:
  static constexpr std::size_t kStarts = 3;

  Trial attempt(Order order) {
    Trial trial{.order = std::move(order), .placement = {}, .excess = 0};
    trial.placement = pack(trial.order);
    if (best_.offsets.empty() || trial.placement.extent < best_.extent) best_ = trial.placement;
    for (std::uint32_t interval = 0; interval < intervals_.size(); ++interval) {
      trial.excess += um::saturating_difference(end(trial.placement, interval), room_).count();
    }
    return trial;
  }

  IntervalPlacement pack(const Order& order) {
    IntervalPlacement result{.offsets = std::vector<Bytes>(intervals_.size()), .extent = {}};
    packer_.clear();
    for (const std::uint32_t interval : order) {
      result.offsets[interval] = packer_.place(interval);
      result.extent = std::max(result.extent, end(result, interval));
    }
    return result;
  }

  void improve(Trial trial) {
    constexpr std::size_t kPairs = 120'000'000;
    const std::size_t max = 100 * intervals_.size();
    for (std::size_t i = std::min(max, kPairs / (intervals_.size() * intervals_.size())); i > 0;
         --i) {
      if (best_.extent <= room_) return;
      Trial varied = attempt(vary(trial));
      if (varied.excess <= trial.excess) trial = std::move(varied);
    }
  }

  // Moves near intervals that exceed the room, and sometimes others, to other places in the order.
  Order vary(const Trial& trial) {
    std::vector<std::size_t> high;
    for (std::size_t place = 1; place < trial.order.size(); ++place) {
      if (end(trial.placement, trial.order[place]) > room_) high.push_back(place);
    }
    Order order = trial.order;
    if (high.empty()) return order;  // the first of the order alone is too large
    do {
      const bool is_any = draw(2) == 0;
      const std::size_t from = is_any ? 1 + draw(order.size() - 1) : high[draw(high.size())];
      const std::size_t to = draw(from);
      const auto at = [&](std::size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
      const bool is_later = is_any && draw(2) == 0;
      std::rotate(at(to), is_later ? at(to + 1) : at(from), at(from + 1));
    } while (draw(2) == 0);
    return order;
  }

  [[nodiscard]] Bytes end(const IntervalPlacement& placement, std::uint32_t interval) const {
    return placement.offsets[interval] + intervals_[interval].size;
  }
  std::size_t draw(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  std::span<const NearInterval> intervals_;
  IntervalPacker packer_;
  Bytes room_;
  IntervalPlacement best_;
  std::mt19937_64 random_{1};
};

}  // namespace

std::vector<IntervalSpan> find_spans(const Plan& plan, std::span<const NearInterval> intervals) {
  const Beginnings beginnings{plan};
  const auto runs = static_cast<Position>(plan.runs.size());
  std::vector<IntervalSpan> spans;
  spans.reserve(intervals.size());
  for (const NearInterval& interval : intervals) {
    IntervalSpan span;
    span.begun = interval.is_prefetched ? beginnings.of_prefetch(interval.first)
                                        : beginnings.of_run(interval.first);
    span.ended.runs =
        interval.is_offloaded ? plan.offloads[interval.last].frees_after() : interval.last + 1;
    span.ended.offloads = interval.is_offloaded ? interval.last + 1 : 0;
    span.begin = span.begun.runs;
    span.end = beginnings.first_run_after(span.ended);
    span.spans_steps = interval.spans_steps;
    if (span.spans_steps) {
      if (!interval.is_offloaded) span.ended.runs = runs + 1;
      span.begin = 0;
      span.end = runs;
    }
    spans.push_back(span);
  }
  return spans;
}

IntervalPacker::IntervalPacker(std::span<const NearInterval> intervals,
                               std::span<const IntervalSpan> spans) {
  const auto is_run_begun = [](const NearInterval& interval) { return !interval.is_prefetched; };
  run_begun_ = static_cast<std::uint32_t>(std::ranges::partition_point(intervals, is_run_begun) -
                                          intervals.begin());
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const Progress& ended = spans[i].ended;
    const auto is_before = [&](const IntervalSpan& later) {
      return later.begun.runs < ended.runs || later.begun.offloads < ended.offloads;
    };
    const auto end = [&](std::span<const IntervalSpan> kind) {
      return static_cast<std::uint32_t>(std::ranges::partition_point(kind, is_before) -
                                        kind.begin());
    };
    tenants_.push_back({.size = intervals[i].size.count(),
                        .run_begun_end = end(spans.first(run_begun_)),
                        .prefetch_begun_end = run_begun_ + end(spans.subspan(run_begun_)),
                        .spans_steps = spans[i].spans_steps});
  }
}

um::Bytes IntervalPacker::place(std::uint32_t index) {
  const std::uint64_t offset = lowest_gap(index);
  if (tenants_[index].spans_steps) {
    spanning_.push_back({.index = index, .offset = offset});
  } else {
    insert(index, offset);
  }
  return um::Bytes{offset};
}

IntervalPacker::Beside IntervalPacker::beside(std::uint32_t index, const Leaf& leaf) const {
  const auto& [size, run_begun_end, prefetch_begun_end, spans_steps] = tenants_[index];
  const bool is_run_begun = index < run_begun_;
  const std::uint32_t min_end = is_run_begun ? leaf.min_run_begun_end : leaf.min_prefetch_begun_end;
  const std::uint32_t max_end = is_run_begun ? leaf.max_run_begun_end : leaf.max_prefetch_begun_end;
  if (index >= max_end) return Beside::kNone;
  if (leaf.first_run_begun >= run_begun_end && leaf.first_prefetch_begun >= prefetch_begun_end) {
    return Beside::kNone;
  }
  if (index < min_end && leaf.last_run_begun <= run_begun_end &&
      leaf.last_prefetch_begun <= prefetch_begun_end) {
    return Beside::kAll;
  }
  return Beside::kSome;
}

std::uint64_t IntervalPacker::lowest_gap(std::uint32_t index) const {
  std::uint64_t offset = 0;
  while (true) {
    const std::uint64_t gap =
        tenants_[index].spans_steps ? gap_of_spanning(index, offset) : gap_in_leaves(index, offset);
    offset = past_spanning(index, gap);
    if (offset == gap) return offset;
  }
}

bool IntervalPacker::may_begin_before_end(std::uint32_t other, std::uint32_t index) const {
  const Tenant& tenant = tenants_[index];
  return other < (other < run_begun_ ? tenant.run_begun_end : tenant.prefetch_begun_end);
}

std::uint64_t IntervalPacker::past_spanning(std::uint32_t index, std::uint64_t offset) const {
  const std::uint64_t end = offset + tenants_[index].size;
  for (const Spanning& placed : spanning_) {
    const std::uint64_t placed_end = placed.offset + tenants_[placed.index].size;
    if (placed_end <= offset || end <= placed.offset) continue;
    const bool is_beside = tenants_[index].spans_steps ||
                           may_begin_before_end(placed.index, index) ||
                           may_begin_before_end(index, placed.index);
    if (is_beside) return placed_end;
  }
  return offset;
}

std::uint64_t IntervalPacker::gap_of_spanning(std::uint32_t index, std::uint64_t offset) const {
  const std::uint64_t size = tenants_[index].size;
  for (const Leaf& leaf : leaves_) {
    for (std::size_t i = 0; i < leaf.indices.size(); ++i) {
      const std::uint32_t other = leaf.indices[i];
      if (!may_begin_before_end(other, index) && !may_begin_before_end(index, other)) continue;
      if (offset + size <= leaf.offsets[i]) return offset;
      offset = std::max(offset, leaf.ends[i]);
    }
  }
  return offset;
}

std::uint64_t IntervalPacker::gap_in_leaves(std::uint32_t index, std::uint64_t offset) const {
  const std::uint64_t size = tenants_[index].size;
  for (const Leaf& leaf : leaves_) {
    const Beside those = beside(index, leaf);
    if (those == Beside::kNone) continue;
    if (those == Beside::kAll && leaf.widest_gap < size) {
      if (offset + size <= leaf.offsets.front()) return offset;
      offset = std::max(offset, leaf.end);
      continue;
    }
    if (pass(index, leaf, offset)) return offset;
  }
  return offset;
}

bool IntervalPacker::pass(std::uint32_t index, const Leaf& leaf, std::uint64_t& offset) const {
  const auto& [size, run_begun_end, prefetch_begun_end, spans_steps] = tenants_[index];
  const std::uint32_t* const ends =
      index < run_begun_ ? leaf.run_begun_ends.data() : leaf.prefetch_begun_ends.data();
  const std::size_t count = leaf.indices.size();
  const std::uint32_t prefetch_begun = prefetch_begun_end - run_begun_;
  std::array<std::uint32_t, kLeafSize> is_beside;  // NOLINT: the loop fills what is read
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t other = leaf.indices[i];
    // Below run_begun_ the difference wraps around to a large number.
    const bool may_begin = (other < run_begun_end) | (other - run_begun_ < prefetch_begun);
    is_beside[i] = static_cast<std::uint32_t>(may_begin & (index < ends[i]));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (is_beside[i] == 0) continue;
    if (offset + size <= leaf.offsets[i]) return true;
    offset = std::max(offset, leaf.ends[i]);
  }
  return false;
}

void IntervalPacker::insert(std::uint32_t index, std::uint64_t offset) {
  if (leaves_.empty()) leaves_.emplace_back();
  const auto begins_before = [&](const Leaf& leaf) {
    return !leaf.offsets.empty() && leaf.offsets.front() <= offset;
  };
  auto after = std::ranges::partition_point(leaves_, begins_before);
  if (after != leaves_.begin()) --after;
  if (after->indices.size() == kLeafSize) {
    constexpr std::size_t kHalf = kLeafSize / 2;
    Leaf rest{.indices = split_off(after->indices, kHalf),
              .offsets = split_off(after->offsets, kHalf),
              .ends = split_off(after->ends, kHalf),
              .run_begun_ends = split_off(after->run_begun_ends, kHalf),
              .prefetch_begun_ends = split_off(after->prefetch_begun_ends, kHalf)};
    const bool is_in_rest = rest.offsets.front() <= offset;
    count_anew(*after);
    count_anew(rest);
    after = leaves_.insert(after + 1, std::move(rest));
    if (!is_in_rest) --after;
  }
  insert_into(*after, index, offset);
}

void IntervalPacker::insert_into(Leaf& leaf, std::uint32_t index, std::uint64_t offset) const {
  const auto place = static_cast<std::size_t>(std::ranges::upper_bound(leaf.offsets, offset) -
                                              leaf.offsets.begin());
  const Tenant& tenant = tenants_[index];
  insert_at(leaf.indices, place, index);
  insert_at(leaf.offsets, place, offset);
  insert_at(leaf.ends, place, offset + tenant.size);
  insert_at(leaf.run_begun_ends, place, tenant.run_begun_end);
  insert_at(leaf.prefetch_begun_ends, place, tenant.prefetch_begun_end);
  if (place == 0 && leaf.end > 0 && offset + tenant.size < leaf.offsets[1]) {
    leaf.widest_gap = std::max(leaf.widest_gap, leaf.offsets[1] - offset - tenant.size);
  }
  count(leaf, index, offset);
}

void IntervalPacker::count(Leaf& leaf, std::uint32_t index, std::uint64_t offset) const {
  const auto& [size, run_begun_end, prefetch_begun_end, spans_steps] = tenants_[index];
  const bool is_run_begun = index < run_begun_;
  std::uint32_t& first = is_run_begun ? leaf.first_run_begun : leaf.first_prefetch_begun;
  std::uint32_t& last = is_run_begun ? leaf.last_run_begun : leaf.last_prefetch_begun;
  first = std::min(first, index);
  last = std::max(last, index + 1);
  leaf.min_run_begun_end = std::min(leaf.min_run_begun_end, run_begun_end);
  leaf.max_run_begun_end = std::max(leaf.max_run_begun_end, run_begun_end);
  leaf.min_prefetch_begun_end = std::min(leaf.min_prefetch_begun_end, prefetch_begun_end);
  leaf.max_prefetch_begun_end = std::max(leaf.max_prefetch_begun_end, prefetch_begun_end);
  if (leaf.end > 0 && offset > leaf.end) {
    leaf.widest_gap = std::max(leaf.widest_gap, offset - leaf.end);
  }
  leaf.end = std::max(leaf.end, offset + size);
}

void IntervalPacker::count_anew(Leaf& leaf) const {
  leaf.first_run_begun = leaf.first_prefetch_begun = kNever;
  leaf.last_run_begun = leaf.last_prefetch_begun = 0;
  leaf.min_run_begun_end = leaf.min_prefetch_begun_end = kNever;
  leaf.max_run_begun_end = leaf.max_prefetch_begun_end = 0;
  leaf.widest_gap = leaf.end = 0;
  for (std::size_t i = 0; i < leaf.indices.size(); ++i) {
    count(leaf, leaf.indices[i], leaf.offsets[i]);
  }
}

IntervalPlacement place_intervals(const Plan& plan, std::span<const NearInterval> intervals,
                                  Bytes room) {
  if (intervals.empty()) return {};
  const std::vector<IntervalSpan> spans = find_spans(plan, intervals);
  return OrderSearch{intervals, spans, room}.search(
      orders_to_try(intervals, spans, plan.runs.size()));
}

}  // namespace spillway::prefetch
