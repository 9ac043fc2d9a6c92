#include "prefetch/placement/interval_placement.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <utility>

#include "prefetch/block_sizes.h"
#include "prefetch/placement/interval_packer.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;
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

IntervalPlacement place_intervals(const Plan& plan, std::span<const NearInterval> intervals,
                                  Bytes room) {
  if (intervals.empty()) return {};
  const std::vector<IntervalSpan> spans = find_spans(plan, intervals);
  return OrderSearch{intervals, spans, room}.search(
      orders_to_try(intervals, spans, plan.runs.size()));
}

}  // namespace spillway::prefetch
