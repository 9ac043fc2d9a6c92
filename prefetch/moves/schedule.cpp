#include "prefetch/moves/schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <tuple>

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Bytes near during each run, as far intervals end.
class EarlyRoom {
 public:
  EarlyRoom(std::span<const Bytes> demand, Bytes pool, std::span<const FarInterval> far_intervals)
      : near_{without(demand, far_intervals)}, pool_{pool} {}

  // The earliest position from which on its pages could be near up to their next use.
  [[nodiscard]] Position earliest(const FarInterval& far_interval) const {
    Position p = far_interval.next;
    while (p > far_interval.needed && near_[p - 1] + far_interval.size <= pool_) --p;
    return p;
  }

  void take_back(const FarInterval& far_interval, Position from) {
    for (Position p = from; p < far_interval.next; ++p) near_[p] += far_interval.size;
  }

 private:
  std::vector<Bytes> near_;
  Bytes pool_;
};

// Which parts of blocks have a far copy, swap after swap.
class FarCopies {
 public:
  FarCopies(std::span<const FarInterval> far_intervals, std::span<const FarInterval> copies) {
    std::size_t blocks = 0;
    for (const FarInterval& far_interval : far_intervals) {
      blocks = std::max(blocks, static_cast<std::size_t>(far_interval.data) + 1);
    }
    copies_.resize(blocks);
    for (const FarInterval& far_interval : far_intervals) {
      if (far_interval.starts_far) add(far_interval);
    }
    for (const FarInterval& copy : copies) {
      if (static_cast<std::size_t>(copy.data) < blocks) add(copy);
    }
  }

  // True when all of `far_interval` was copied after its block was last written.
  bool covers(const FarInterval& far_interval) {
    std::vector<FarInterval>& made = copies_[static_cast<std::size_t>(far_interval.data)];
    std::erase_if(made, [&](const FarInterval& copy) {
      return copy.from_start ? far_interval.is_written : copy.last < far_interval.written;
    });
    Bytes covered = far_interval.offset;  // in order of offset: one pass
    for (const FarInterval& copy : made) {
      if (copy.offset <= covered) covered = std::max(covered, copy.offset + copy.size);
    }
    return covered >= far_interval.offset + far_interval.size;
  }

  // True when part of `far_interval` was: what was away before must be back before it is copied.
  // Requires: covers() was asked before.
  [[nodiscard]] bool overlap(const FarInterval& far_interval) const {
    const auto& made = copies_[static_cast<std::size_t>(far_interval.data)];
    return std::ranges::any_of(made, [&](const FarInterval& copy) {
      return copy.offset < far_interval.offset + far_interval.size &&
             far_interval.offset < copy.offset + copy.size;
    });
  }

  void add(const FarInterval& far_interval) {
    std::vector<FarInterval>& made = copies_[static_cast<std::size_t>(far_interval.data)];
    const auto after =
        std::ranges::upper_bound(made, far_interval.offset, {}, &FarInterval::offset);
    made.insert(after, far_interval);
  }

 private:
  std::vector<std::vector<FarInterval>> copies_;  // by block, in order of offset
};

Move move_of(const FarInterval& far_interval) {
  return {.data = far_interval.data, .offset = far_interval.offset, .size = far_interval.size};
}

// Adds `move` to a queue, or makes the last move longer by it where both start under the same
// conditions and move neighbouring pages: each copy costs latency. Nobody may wait for the last one
// alone.
void append(const Move& move, bool may_merge, std::vector<Move>& queue) {
  if (may_merge && !queue.empty()) {
    Move& last = queue.back();
    if (last.data == move.data && last.offset + last.size == move.offset &&
        last.is_clean == move.is_clean && last.after == move.after &&
        last.free_after == move.free_after) {
      last.size += move.size;
      return;
    }
  }
  queue.push_back(move);
}

// How many entries of a queue must have ended before each run, from how many it needs itself.
void accumulate_needs(std::vector<std::uint32_t>& needs) {
  std::partial_sum(needs.begin(), needs.end(), needs.begin(),
                   [](std::uint32_t a, std::uint32_t b) { return std::max(a, b); });
}

// How many runs have ended when its offload may start, and `early` already while it is read.
Position leaves_after(const FarInterval& each, bool early) {
  if (each.from_start) return 0;
  return 1 + (early && !each.is_renewal ? each.written : each.last);
}

// The order of offloads: that of the runs that count on their room. What leaves for no run's sake
// goes before the first of them that cannot start sooner.
std::vector<std::size_t> order_of_leaving(std::span<const FarInterval> far_intervals,
                                          const LinkProfile& link, const Plan& plan) {
  std::vector<std::size_t> wanted;
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < far_intervals.size(); ++i) {
    const FarInterval& each = far_intervals[i];
    const bool is_counted_on = !each.is_renewal && each.needed < plan.runs.size();
    (is_counted_on ? wanted : others).push_back(i);
  }
  std::ranges::stable_sort(wanted, {}, [&](std::size_t i) {
    const FarInterval& each = far_intervals[i];
    return std::tuple{each.needed, each.last, each.data, each.offset};
  });
  std::ranges::stable_sort(others, std::ranges::greater{}, [&](std::size_t i) {
    const FarInterval& each = far_intervals[i];
    return std::tuple{each.last, each.data, each.offset};
  });
  std::vector<std::size_t> order;
  order.reserve(far_intervals.size());
  const auto add_others = [&](Position before) {
    for (; !others.empty() && far_intervals[others.back()].last < before; others.pop_back()) {
      order.push_back(others.back());
    }
  };
  for (const std::size_t i : wanted) {
    add_others(leaves_after(far_intervals[i], link.copies_while_read));
    order.push_back(i);
  }
  add_others(static_cast<Position>(plan.runs.size()));
  return order;
}

}  // namespace

std::vector<Swap> return_early(std::span<const FarInterval> far_intervals,
                               std::span<const Bytes> demand, Bytes pool) {
  EarlyRoom room{demand, pool, far_intervals};
  std::vector<std::size_t> order(far_intervals.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return far_intervals[i].next; });
  std::vector<Swap> swaps;
  Position previous = 0;
  for (const std::size_t i : order) {
    const FarInterval& far_interval = far_intervals[i];
    if (far_interval.to_end) {
      swaps.push_back({far_interval, far_interval.next});
      continue;
    }
    const Position earliest = room.earliest(far_interval);
    if (earliest == far_interval.needed && !far_interval.starts_far) {
      room.take_back(far_interval, earliest);
      continue;
    }
    previous = std::max(previous, earliest);  // in order: it cannot start before its predecessor
    room.take_back(far_interval, previous);
    swaps.push_back({far_interval, previous});
  }
  return swaps;
}

std::vector<Bytes> near_during(std::span<const Swap> swaps, std::span<const Bytes> demand) {
  std::vector<FarInterval> far_intervals{swaps.begin(), swaps.end()};
  for (std::size_t i = 0; i < swaps.size(); ++i) far_intervals[i].next = swaps[i].back;
  return without(demand, far_intervals);
}

bool fits(std::span<const Swap> swaps, std::span<const Bytes> demand, Bytes pool) {
  return std::ranges::all_of(near_during(swaps, demand), [&](Bytes near) { return near <= pool; });
}

std::vector<std::uint32_t> add_offloads(std::span<const FarInterval> far_intervals,
                                        const LinkProfile& link,
                                        std::span<const FarInterval> copies_from_start,
                                        bool may_merge, Plan& plan,
                                        std::vector<std::uint32_t>& counted_on) {
  counted_on.assign(plan.runs.size() + 1, 0);
  std::vector<std::uint32_t> places(far_intervals.size());
  plan.offloads.reserve(far_intervals.size());
  FarCopies copies{far_intervals, copies_from_start};
  Position needed = 0;  // of the last move
  for (const std::size_t i : order_of_leaving(far_intervals, link, plan)) {
    const FarInterval& each = far_intervals[i];
    if (each.starts_far) continue;
    Move move = move_of(each);
    move.is_clean = copies.covers(each);
    if (each.is_renewal && move.is_clean) {
      places[i] = kLeftOut;
      continue;
    }
    const bool may_be_early = move.is_clean || !copies.overlap(each);
    move.after.runs = leaves_after(each, link.copies_while_read && may_be_early);
    move.free_after = !each.from_start && move.after.runs <= each.last ? each.last + 1 : 0;
    if (!move.is_clean) copies.add(each);
    append(move, may_merge && each.needed == needed, plan.offloads);
    needed = each.needed;
    places[i] = static_cast<std::uint32_t>(plan.offloads.size());
    if (!each.is_renewal) counted_on[each.needed] = places[i];
  }
  accumulate_needs(counted_on);
  return places;
}

void add_moves(std::vector<Swap> swaps, const LinkProfile& link, Plan& plan,
               std::span<const FarInterval> copies) {
  std::ranges::stable_sort(swaps, {}, [](const Swap& swap) {
    return std::tuple{swap.back, swap.next, swap.data, swap.offset};
  });
  std::vector<std::uint32_t> counted_on;  // by run: offloads it waits for
  const std::vector<FarInterval> far_intervals{swaps.begin(), swaps.end()};
  const std::vector<std::uint32_t> places =
      add_offloads(far_intervals, link, copies, true, plan, counted_on);
  plan.prefetches.reserve(swaps.size());
  std::vector<std::uint32_t> landed(plan.runs.size() + 1);  // by run: prefetches it waits for
  Position next = 0;                                        // of the last move
  for (std::size_t i = 0; i < swaps.size(); ++i) {
    if (swaps[i].to_end || places[i] == kLeftOut) continue;
    Move move = move_of(swaps[i]);
    move.after.runs = swaps[i].back;
    move.after.offloads = std::max(places[i], counted_on[swaps[i].back]);
    append(move, swaps[i].next == next, plan.prefetches);
    next = swaps[i].next;
    landed[next] = static_cast<std::uint32_t>(plan.prefetches.size());
  }
  accumulate_needs(landed);
  for (Position p = 0; p < plan.runs.size(); ++p) {
    plan.runs[p].after = {.runs = p, .offloads = counted_on[p], .prefetches = landed[p]};
  }
}

}  // namespace spillway::prefetch
