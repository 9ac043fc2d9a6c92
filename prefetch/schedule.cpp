#include "prefetch/schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <tuple>

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Bytes near during each run, as absences come back.
class Room {
 public:
  Room(std::span<const Bytes> demand, Bytes pool, std::span<const Absence> absences)
      : near_{without(demand, absences)}, pool_{pool} {}

  // The earliest position from which on `absence` could be near up to its next use.
  [[nodiscard]] Position earliest(const Absence& absence) const {
    Position p = absence.next;
    while (p > absence.needed && near_[p - 1] + absence.size <= pool_) --p;
    return p;
  }

  void take_back(const Absence& absence, Position from) {
    for (Position p = from; p < absence.next; ++p) near_[p] += absence.size;
  }

 private:
  std::vector<Bytes> near_;
  Bytes pool_;
};

// Which parts of blocks have a far copy, trip after trip.
class FarCopies {
 public:
  explicit FarCopies(std::span<const RoundTrip> trips) {
    std::size_t blocks = 0;
    for (const RoundTrip& trip : trips) {
      blocks = std::max(blocks, static_cast<std::size_t>(trip.absence.data) + 1);
    }
    copies_.resize(blocks);
  }

  // True when all of `absence` was copied after its block was last written.
  bool covers(const Absence& absence) {
    std::vector<Absence>& made = copies_[static_cast<std::size_t>(absence.data)];
    std::erase_if(made, [&](const Absence& copy) {
      return copy.from_start ? absence.is_written : copy.last < absence.written;
    });
    Bytes covered = absence.offset;  // in order of offset: one pass
    for (const Absence& copy : made) {
      if (copy.offset <= covered) covered = std::max(covered, copy.offset + copy.size);
    }
    return covered >= absence.offset + absence.size;
  }

  void add(const Absence& absence) {
    std::vector<Absence>& made = copies_[static_cast<std::size_t>(absence.data)];
    const auto after = std::ranges::upper_bound(made, absence.offset, {}, &Absence::offset);
    made.insert(after, absence);
  }

 private:
  std::vector<std::vector<Absence>> copies_;  // by block, in order of offset
};

Move move_of(const Absence& absence) {
  return {.data = absence.data, .offset = absence.offset, .size = absence.size};
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

// Returns, by trip, how many offloads have ended when its own has; 0 where nothing leaves.
std::vector<std::uint32_t> add_offloads(std::span<const RoundTrip> trips, const LinkProfile& link,
                                        Plan& plan, std::vector<std::uint32_t>& counted_on) {
  std::vector<std::size_t> order(trips.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    const Absence& absence = trips[i].absence;
    return std::tuple{absence.needed, absence.last, absence.data, absence.offset};
  });
  std::vector<std::uint32_t> places(trips.size());
  plan.offloads.reserve(trips.size());
  FarCopies copies{trips};
  for (const RoundTrip& trip : trips) {
    if (trip.absence.from_start) copies.add(trip.absence);
  }
  Position needed = 0;  // of the last move
  for (const std::size_t i : order) {
    const Absence& absence = trips[i].absence;
    if (absence.from_start) continue;
    Move move = move_of(absence);
    move.is_clean = copies.covers(absence);
    move.after.runs = 1 + (link.copies_while_read ? absence.written : absence.last);
    move.free_after = move.after.runs <= absence.last ? absence.last + 1 : 0;
    if (!move.is_clean) copies.add(absence);
    append(move, absence.needed == needed, plan.offloads);
    needed = absence.needed;
    places[i] = static_cast<std::uint32_t>(plan.offloads.size());
    counted_on[absence.needed] = places[i];
  }
  accumulate_needs(counted_on);
  return places;
}

}  // namespace

std::vector<RoundTrip> return_early(std::span<const Absence> absences,
                                    std::span<const Bytes> demand, Bytes pool) {
  Room room{demand, pool, absences};
  std::vector<std::size_t> order(absences.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return absences[i].next; });
  std::vector<RoundTrip> trips;
  Position previous = 0;
  for (const std::size_t i : order) {
    const Absence& absence = absences[i];
    if (absence.to_end) {
      trips.push_back({.absence = absence, .back = absence.next});
      continue;
    }
    const Position earliest = room.earliest(absence);
    if (earliest == absence.needed && !absence.from_start) {
      room.take_back(absence, earliest);
      continue;
    }
    previous = std::max(previous, earliest);  // in order: it cannot start before its predecessor
    room.take_back(absence, previous);
    trips.push_back({.absence = absence, .back = previous});
  }
  return trips;
}

std::vector<Bytes> near_during(std::span<const RoundTrip> trips, std::span<const Bytes> demand) {
  std::vector<Absence> absences;
  absences.reserve(trips.size());
  for (const RoundTrip& trip : trips) {
    absences.push_back(
        {.size = trip.absence.size, .next = trip.back, .needed = trip.absence.needed});
  }
  return without(demand, absences);
}

bool fits(std::span<const RoundTrip> trips, std::span<const Bytes> demand, Bytes pool) {
  return std::ranges::all_of(near_during(trips, demand), [&](Bytes near) { return near <= pool; });
}

void add_moves(std::vector<RoundTrip> trips, const LinkProfile& link, Plan& plan) {
  std::ranges::stable_sort(trips, {}, [](const RoundTrip& trip) {
    const Absence& absence = trip.absence;
    return std::tuple{trip.back, absence.next, absence.data, absence.offset};
  });
  std::vector<std::uint32_t> counted_on(plan.runs.size() + 1);  // by run: offloads it waits for
  const std::vector<std::uint32_t> places = add_offloads(trips, link, plan, counted_on);
  plan.prefetches.reserve(trips.size());
  std::vector<std::uint32_t> landed(plan.runs.size() + 1);  // by run: prefetches it waits for
  Position next = 0;                                        // of the last move
  for (std::size_t i = 0; i < trips.size(); ++i) {
    if (trips[i].absence.to_end) continue;
    Move move = move_of(trips[i].absence);
    move.after.runs = trips[i].back;
    move.after.offloads = std::max(places[i], counted_on[trips[i].back]);
    append(move, trips[i].absence.next == next, plan.prefetches);
    next = trips[i].absence.next;
    landed[next] = static_cast<std::uint32_t>(plan.prefetches.size());
  }
  accumulate_needs(landed);
  for (Position p = 0; p < plan.runs.size(); ++p) {
    plan.runs[p].after = {.runs = p, .offloads = counted_on[p], .prefetches = landed[p]};
  }
}

}  // namespace spillway::prefetch
