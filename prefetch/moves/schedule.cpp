#include "prefetch/moves/schedule.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <tuple>
#include <vector>

#include "prefetch/liveness.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Bytes near during each run while far intervals are shortened.
class EarlyRoom {
 public:
  EarlyRoom(std::span<const Bytes> demand, Bytes pool, std::span<const FarInterval> far_intervals)
      : near_{without(demand, far_intervals)}, pool_{pool} {}

  // Returns the earliest position from which its pages could be near up to their next use.
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

// Tracks which parts of blocks have a valid far copy, swap after swap.
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

  enum class Copied { kNothing, kInPart, kWhole };
  // Returns how much of `far_interval` was copied after its block was last written.
  [[nodiscard]] Copied copied_of(const FarInterval& far_interval) const {
    const Bytes end = far_interval.offset + far_interval.size;
    Bytes covered = far_interval.offset;  // in order of offset: one pass
    bool overlaps = false;
    for (const FarInterval& copy : copies_[static_cast<std::size_t>(far_interval.data)]) {
      if (!is_valid(copy, far_interval)) continue;
      if (copy.offset <= covered) covered = std::max(covered, copy.offset + copy.size);
      overlaps = overlaps || (copy.offset < end && far_interval.offset < copy.offset + copy.size);
    }
    if (covered >= end) return Copied::kWhole;
    return overlaps ? Copied::kInPart : Copied::kNothing;
  }

  // Forgets outdated copies; no earlier interval of the block will be queried.
  void forget_before(const FarInterval& far_interval) {
    std::erase_if(copies_[static_cast<std::size_t>(far_interval.data)],
                  [&](const FarInterval& copy) { return !is_valid(copy, far_interval); });
  }

  void add(const FarInterval& far_interval) {
    std::vector<FarInterval>& made = copies_[static_cast<std::size_t>(far_interval.data)];
    const auto after =
        std::ranges::upper_bound(made, far_interval.offset, {}, &FarInterval::offset);
    made.insert(after, far_interval);
  }

 private:
  [[nodiscard]] static bool is_valid(const FarInterval& copy, const FarInterval& far_interval) {
    return copy.from_start ? !far_interval.is_written : copy.last >= far_interval.written;
  }

  std::vector<std::vector<FarInterval>> copies_;  // by block, in order of offset
};

Move move_of(const FarInterval& far_interval) {
  return {.data = far_interval.data, .offset = far_interval.offset, .size = far_interval.size};
}

// Appends `move` to a queue, or extends the last move if both have the same conditions and
// neighbouring pages: each copy costs latency. Requires for merging: nothing waits for the last
// move alone.
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

// Turns the number of queue entries that each run needs itself into a running maximum.
void accumulate_needs(std::vector<std::uint32_t>& needs) {
  std::partial_sum(needs.begin(), needs.end(), needs.begin(),
                   [](std::uint32_t a, std::uint32_t b) { return std::max(a, b); });
}

// Offloads in the order of the runs that count on their room. Offloads without such a run go before
// the first one that cannot start sooner.
class OffloadQueue {
 public:
  // `returns`: by far interval, how many runs have ended when its prefetch may start.
  OffloadQueue(std::span<const FarInterval> far_intervals, std::span<const Position> returns,
               const LinkProfile& link, std::span<const FarInterval> copies, bool may_merge,
               Plan& plan)
      : far_intervals_{far_intervals},
        copies_while_read_{link.copies_while_read},
        may_merge_{may_merge},
        plan_{plan},
        copies_{far_intervals, copies} {
    for (std::size_t i = 0; i < far_intervals.size(); ++i) {
      const FarInterval& each = far_intervals[i];
      const bool is_counted_on = !each.is_renewal && each.needed < plan.runs.size();
      (is_counted_on ? wanted_ : others_).push_back(i);
    }
    std::ranges::stable_sort(wanted_, {}, [&](std::size_t i) {
      const FarInterval& each = far_intervals[i];
      return std::tuple{each.needed, each.last, each.data, each.offset};
    });
    std::ranges::stable_sort(others_, std::ranges::greater{}, [&](std::size_t i) {
      const FarInterval& each = far_intervals[i];
      return std::tuple{each.last, each.data, each.offset};
    });
    for (const std::size_t i : others_) {
      const Position returned = far_intervals[i].to_end || returns.empty() ? kNever : returns[i];
      first_return_.push_back(
          std::min(returned, first_return_.empty() ? kNever : first_return_.back()));
    }
  }

  // Calls `note` with each far interval and the number of offloads that have ended when its own
  // has.
  template <typename Note>
  void add_all(const Note& note) {
    for (const std::size_t i : wanted_) {
      add_others(far_intervals_[i], note);
      add(i, note);
    }
    while (!others_.empty()) add_next_other(note);
  }

 private:
  using Copied = FarCopies::Copied;
  static constexpr Position kNever = std::numeric_limits<Position>::max();

  // Returns how many runs have ended when its offload may start; its previously far part must be
  // back.
  [[nodiscard]] Position start(const FarInterval& each) const {
    const bool early = copies_while_read_ && copies_.copied_of(each) != Copied::kInPart;
    if (each.from_start) return 0;
    return 1 + (early && !each.is_renewal ? each.written : each.last);  // early: while it is read
  }

  // Adds offloads that can start sooner, and those with prefetches that must not wait until tasks
  // have read `before`.
  template <typename Note>
  void add_others(const FarInterval& before, const Note& note) {
    while (!others_.empty() && (far_intervals_[others_.back()].last < start(before) ||
                                first_return_[others_.size() - 1] <= before.last)) {
      add_next_other(note);
    }
  }

  template <typename Note>
  void add_next_other(const Note& note) {
    const std::size_t i = others_.back();
    others_.pop_back();
    add(i, note);
  }

  template <typename Note>
  void add(std::size_t i, const Note& note) {
    const FarInterval& each = far_intervals_[i];
    if (each.starts_far) return;
    copies_.forget_before(each);
    Move move = move_of(each);
    move.is_clean = copies_.copied_of(each) == Copied::kWhole;
    if (each.is_renewal && move.is_clean) return note(i, kLeftOut);
    move.after.runs = start(each);
    move.free_after = !each.from_start && move.after.runs <= each.last ? each.last + 1 : 0;
    if (!move.is_clean) copies_.add(each);
    append(move, may_merge_ && each.needed == needed_, plan_.offloads);
    needed_ = each.needed;
    note(i, static_cast<std::uint32_t>(plan_.offloads.size()));
  }

  std::span<const FarInterval> far_intervals_;
  bool copies_while_read_;
  bool may_merge_;
  Plan& plan_;
  FarCopies copies_;
  std::vector<std::size_t> wanted_;
  std::vector<std::size_t> others_;     // the next one last
  std::vector<Position> first_return_;  // by number of others that are left, less one
  Position needed_ = 0;                 // of the last move
};

// Returns for every k the bytes of the first k moves, plus `before`.
std::vector<Bytes> running_total(const std::vector<Move>& moves, Bytes before) {
  std::vector<Bytes> total{before};
  total.reserve(moves.size() + 1);
  for (const Move& move : moves) total.push_back(total.back() + move.size);
  return total;
}

// Finds values above a limit in ranges (a segment tree of maxima).
class LatestAbove {
 public:
  explicit LatestAbove(const std::vector<std::int64_t>& values)
      : leaves_{std::bit_ceil(std::max<std::size_t>(1, values.size()))},
        max_(2 * leaves_, std::numeric_limits<std::int64_t>::min()) {
    std::ranges::copy(values, max_.begin() + static_cast<std::ptrdiff_t>(leaves_));
    for (std::size_t i = leaves_ - 1; i > 0; --i) max_[i] = std::max(max_[2 * i], max_[2 * i + 1]);
  }

  // Returns the last index in [begin, end) with a value above `limit`; `end` if there is none.
  // Complexity: O(log values).
  [[nodiscard]] std::size_t find(std::size_t begin, std::size_t end, std::int64_t limit) const {
    if (begin >= end) return end;
    std::size_t node = leaves_ + end - 1;  // of a range that ends where the searched one does
    std::size_t size = 1;
    while (max_[node] <= limit) {  // to the preceding range, as large as possible
      while (node % 2 == 0 && node > 1) {
        node /= 2;
        size *= 2;
      }
      if (node == 1 || node * size - leaves_ <= begin) return end;
      --node;
    }
    while (node < leaves_) node = 2 * node + (max_[2 * node + 1] > limit ? 1 : 0);
    const std::size_t found = node - leaves_;
    return found < begin ? end : found;
  }

 private:
  std::size_t leaves_;
  std::vector<std::int64_t> max_;  // a binary heap: the children of node i are 2 i and 2 i + 1
};

// Finds the conditions of each run, in order.
class RunConditions {
 public:
  RunConditions(Plan& plan, std::span<const Bytes> demand, Bytes pool, Bytes far)
      : plan_{plan},
        demand_{demand},
        pool_{pool},
        offloaded_{running_total(plan.offloads, far)},
        prefetched_{running_total(plan.prefetches, {})},
        offloads_before_{offloads_before(plan.prefetches)},
        taken_{taken()} {}

  void add(std::span<const std::uint32_t> landed) {
    Progress sure;
    for (Position p = 0; p < plan_.runs.size(); ++p) {
      sure.runs = p;
      sure.prefetches = std::max(sure.prefetches, landed[p]);
      sure.offloads = std::max(sure.offloads, offloads_before_[sure.prefetches]);
      sure.offloads = std::max(sure.offloads, offloads_for(p, sure));
      plan_.runs[p].after = sure;
    }
  }

 private:
  // Returns by k the number of offloads that have ended when the first k prefetches have started.
  static std::vector<std::uint32_t> offloads_before(const std::vector<Move>& prefetches) {
    std::vector<std::uint32_t> before{0};
    before.reserve(prefetches.size() + 1);
    for (const Move& move : prefetches) {
      before.push_back(std::max(before.back(), move.after.offloads));
    }
    return before;
  }

  // Returns by k the bytes that the first k prefetches have taken beyond the room made before them.
  [[nodiscard]] std::vector<std::int64_t> taken() const {
    std::vector<std::int64_t> result(prefetched_.size());
    for (std::size_t k = 0; k < result.size(); ++k) {
      result[k] = signed_count(prefetched_[k]) - signed_count(offloaded_[offloads_before_[k]]);
    }
    return result;
  }

  // Returns the offloads that run p must wait for, however many optional prefetches have started.
  // The last number of prefetches with too few offloads before it requires the most.
  [[nodiscard]] std::uint32_t offloads_for(Position p, const Progress& sure) {
    for (; may_start_ < plan_.prefetches.size(); ++may_start_) {
      if (plan_.prefetches[may_start_].after.runs > p) break;
    }
    const std::size_t end = std::max<std::size_t>(may_start_, sure.prefetches) + 1;
    const auto begin = static_cast<std::size_t>(
        std::upper_bound(offloads_before_.begin() + sure.prefetches,
                         offloads_before_.begin() + static_cast<std::ptrdiff_t>(end),
                         sure.offloads) -
        offloads_before_.begin());
    std::size_t worst = taken_.find(begin, end, signed_count(pool_) - signed_count(demand_[p]));
    if (worst == end) worst = begin - 1;  // among those with no more room than is guaranteed
    const auto away = std::ranges::lower_bound(
        offloaded_, um::saturating_difference(demand_[p] + prefetched_[worst], pool_));
    um::expects(away != offloaded_.end(), "an execution keeps within its pool");
    return static_cast<std::uint32_t>(away - offloaded_.begin());
  }

  Plan& plan_;
  std::span<const Bytes> demand_;
  Bytes pool_;
  std::vector<Bytes> offloaded_;
  std::vector<Bytes> prefetched_;
  std::vector<std::uint32_t> offloads_before_;
  LatestAbove taken_;
  std::size_t may_start_ = 0;  // prefetches that may have started before the current run
};

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
    previous = std::max(previous, earliest);  // in order: not before its predecessor
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
                                        std::span<const Position> returns, const LinkProfile& link,
                                        std::span<const FarInterval> copies_from_start,
                                        bool may_merge, Plan& plan,
                                        std::vector<std::uint32_t>& counted_on) {
  counted_on.assign(plan.runs.size() + 1, 0);
  std::vector<std::uint32_t> places(far_intervals.size());
  plan.offloads.reserve(far_intervals.size());
  OffloadQueue queue{far_intervals, returns, link, copies_from_start, may_merge, plan};
  queue.add_all([&](std::size_t i, std::uint32_t place) {
    places[i] = place;
    if (place == kLeftOut || far_intervals[i].is_renewal) return;
    counted_on[far_intervals[i].needed] = place;
  });
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
  std::vector<Position> returns;
  returns.reserve(swaps.size());
  for (const Swap& swap : swaps) returns.push_back(swap.back);
  const std::vector<std::uint32_t> places =
      add_offloads(far_intervals, returns, link, copies, true, plan, counted_on);
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

void add_run_conditions(std::span<const Bytes> demand, Bytes pool, Bytes far,
                        std::span<const std::uint32_t> landed, Plan& plan) {
  RunConditions{plan, demand, pool, far}.add(landed);
}

}  // namespace spillway::prefetch
