#include "prefetch/stay_placement.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <utility>

#include "prefetch/occupancy.h"
#include "prefetch/stay_order.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;
using Order = std::vector<std::uint32_t>;  // stays, in the order in which they are placed

// Puts stays, one after the other, in the lowest gap that is free throughout their time.
class Packer {
 public:
  Packer(std::span<const Stay> stays, std::span<const StaySpan> spans) {
    for (std::size_t i = 0; i < stays.size(); ++i) {
      stays_.push_back({.size = stays[i].size,
                        .begun = {spans[i].begun.runs, spans[i].begun.offloads},
                        .ended = {spans[i].ended.runs, spans[i].ended.offloads}});
    }
  }

  [[nodiscard]] StayPlacement pack(const Order& order) {
    StayPlacement result{.offsets = std::vector<Bytes>(stays_.size()), .extent = {}};
    placed_.clear();
    for (const std::uint32_t stay : order) {
      const Bytes offset = lowest_gap(stays_[stay]);
      result.offsets[stay] = stays_[stay].offset = offset;
      result.extent = std::max(result.extent, offset + stays_[stay].size);
      const auto is_lower = [&](std::uint32_t other) { return stays_[other].offset <= offset; };
      placed_.insert(std::ranges::partition_point(placed_, is_lower), stay);
    }
    return result;
  }

 private:
  struct Point {  // of progress: what decides when a stay may begin, or has ended
    std::uint32_t runs;
    std::uint32_t offloads;
    [[nodiscard]] bool reaches(const Point& other) const {
      return runs >= other.runs && offloads >= other.offloads;
    }
  };
  struct Tenant {
    Bytes size;
    Point begun;
    Point ended;
    Bytes offset;
  };

  [[nodiscard]] Bytes lowest_gap(const Tenant& tenant) const {
    Bytes offset;
    for (const std::uint32_t index : placed_) {
      const Tenant& other = stays_[index];
      if (tenant.begun.reaches(other.ended) || other.begun.reaches(tenant.ended)) continue;
      if (offset + tenant.size <= other.offset) break;
      offset = std::max(offset, other.offset + other.size);
    }
    return offset;
  }

  std::vector<Tenant> stays_;
  Order placed_;  // by offset
};

template <typename Key>
Order sorted_by(std::size_t count, const Key& key) {
  Order order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater{}, key);
  return order;
}

// By run: its rank among all runs, when those beside which most bytes may be near come last.
std::vector<std::uint64_t> breadth_ranks(std::span<const Stay> stays,
                                         std::span<const StaySpan> spans, std::size_t runs) {
  std::vector<std::uint64_t> breadth(runs + 1);  // differences first: unsigned sums wrap around
  for (std::size_t i = 0; i < stays.size(); ++i) {
    breadth[spans[i].begin] += stays[i].size.count();
    breadth[spans[i].end] -= stays[i].size.count();
  }
  std::partial_sum(breadth.begin(), breadth.end(), breadth.begin());
  const Order widest_first = sorted_by(runs, [&](std::uint32_t run) { return breadth[run]; });
  std::vector<std::uint64_t> ranks(runs);
  for (std::size_t i = 0; i < runs; ++i) ranks[widest_first[i]] = runs - i;
  return ranks;
}

std::vector<Order> orders_to_try(std::span<const Stay> stays, std::span<const StaySpan> spans,
                                 std::size_t runs) {
  const std::vector<std::uint64_t> ranks = breadth_ranks(stays, spans, runs);
  const auto size = [&](std::uint32_t i) { return stays[i].size; };
  const auto length = [&](std::uint32_t i) { return spans[i].end - spans[i].begin; };
  const auto breadth = [&](std::uint32_t i) {
    return *std::max_element(ranks.begin() + spans[i].begin, ranks.begin() + spans[i].end);
  };
  std::vector<std::uint64_t> breadths;
  for (std::uint32_t i = 0; i < stays.size(); ++i) breadths.push_back(breadth(i));
  const auto order = [&](const auto& key) { return sorted_by(stays.size(), key); };
  return {order([&](std::uint32_t i) { return std::pair{size(i), length(i)}; }),
          order([&](std::uint32_t i) { return std::pair{breadths[i], size(i)}; }),
          order([&](std::uint32_t i) { return std::pair{length(i), size(i)}; }),
          order([&](std::uint32_t i) { return length(i) * size(i); }),
          order([&](std::uint32_t i) { return std::pair{runs - spans[i].begin, length(i)}; })};
}

// How often an order may be improved.
std::size_t improvements(std::size_t stays) {
  constexpr std::size_t kPairs = 100 * 2000 * 2000;
  constexpr std::size_t kMost = 1000;
  return std::min(kMost, kPairs / std::max<std::size_t>(1, stays * stays));
}

// Moves what reaches beyond `room` to somewhere before its place in `order`.
void move_up(std::span<const Stay> stays, const StayPlacement& placement, Bytes room,
             std::mt19937_64& random, Order& order) {
  for (std::size_t place = 1; place < order.size(); ++place) {
    const std::uint32_t stay = order[place];
    if (placement.offsets[stay] + stays[stay].size <= room) continue;
    const auto to = static_cast<std::ptrdiff_t>(random() % place);
    const auto from = order.begin() + static_cast<std::ptrdiff_t>(place);
    std::rotate(order.begin() + to, from, from + 1);
  }
}

}  // namespace

StayPlacement place_stays(const Plan& plan, std::span<const Stay> stays, Bytes room) {
  const std::vector<StaySpan> spans = find_spans(plan, stays);
  Packer packer{stays, spans};
  StayPlacement best;
  Order best_order;
  const auto attempt = [&](const Order& order) {
    StayPlacement placement = packer.pack(order);
    if (!best_order.empty() && placement.extent > best.extent) return placement;
    best_order = order;
    best = placement;
    return placement;
  };
  for (const Order& order : orders_to_try(stays, spans, plan.runs.size())) {
    attempt(order);
    if (best.extent <= room) return best;
  }
  std::mt19937_64 random{1};
  for (std::size_t i = improvements(stays.size()); i > 0 && best.extent > room; --i) {
    Order order = best_order;
    move_up(stays, best, std::max(room, best.extent - kSmallestPage), random, order);
    attempt(order);
  }
  return best;
}

PlacedStep place_step(const TaskGraph& graph, const Plan& plan, Bytes room) {
  PlacedStep step{.stays = find_stays(graph, plan), .placement = {}};
  step.placement = place_stays(plan, step.stays, room);
  return step;
}

}  // namespace spillway::prefetch
