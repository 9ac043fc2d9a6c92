#include "prefetch/schedule.h"

#include <algorithm>
#include <numeric>

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Bytes near during each run, as absences are admitted back.
class Room {
 public:
  Room(std::span<const Bytes> demand, Bytes pool, std::span<const Absence> absences)
      : near_(demand.begin(), demand.end()), pool_{pool} {
    for (const Absence& absence : absences) {
      for (Position p = absence.needed; p < absence.next; ++p) near_[p] -= absence.size;
    }
  }

  // The earliest position from which on `absence` could be near up to its next use.
  [[nodiscard]] Position earliest(const Absence& absence) const {
    Position p = absence.next;
    while (p > absence.needed && near_[p - 1] + absence.size <= pool_) --p;
    return p;
  }

  void admit(const Absence& absence, Position from) {
    for (Position p = from; p < absence.next; ++p) near_[p] += absence.size;
  }

 private:
  std::vector<Bytes> near_;
  Bytes pool_;
};

struct Admission {
  std::size_t absence;
  Position from;
};

// In order of next use; an absence that can be near all the time is not in the result.
std::vector<Admission> admit(std::span<const Absence> absences, Room& room) {
  std::vector<std::size_t> order(absences.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return absences[i].next; });
  std::vector<Admission> admissions;
  Position previous = 0;
  for (const std::size_t i : order) {
    const Position earliest = room.earliest(absences[i]);
    if (earliest == absences[i].needed) {
      room.admit(absences[i], earliest);
      continue;
    }
    previous = std::max(previous, earliest);  // in order: it cannot start before its predecessor
    room.admit(absences[i], previous);
    admissions.push_back({.absence = i, .from = previous});
  }
  return admissions;
}

// A block that did not leave has no far copy that a later absence could rely on: the next one that
// is kept must make it.
void forget_far_copy(std::span<Absence> absences, std::size_t dropped,
                     const std::vector<bool>& is_kept) {
  const Absence& gone = absences[dropped];
  const Bytes end = gone.offset + gone.size;
  for (std::size_t i = dropped + 1; i < absences.size(); ++i) {
    Absence& later = absences[i];
    const Bytes later_end = later.offset + later.size;
    if (later.data != gone.data || later.offset >= end || gone.offset >= later_end) continue;
    later.is_clean = false;
    if (is_kept[i] && later.offset <= gone.offset && later_end >= end) break;
  }
}

Move move_of(const Absence& absence) {
  return {.data = absence.data, .offset = absence.offset, .size = absence.size};
}

}  // namespace

void schedule_moves(std::vector<Absence> absences, std::span<const Bytes> demand, Bytes pool,
                    Plan& plan) {
  Room room{demand, pool, absences};
  const std::vector<Admission> admissions = admit(absences, room);

  std::vector<bool> is_kept(absences.size(), false);
  for (const Admission& admission : admissions) is_kept[admission.absence] = true;
  for (std::size_t i = 0; i < absences.size(); ++i) {
    if (!is_kept[i]) forget_far_copy(absences, i, is_kept);
  }
  std::vector<std::uint32_t> offload_index(absences.size());
  std::vector<std::uint32_t> needed_by(plan.runs.size() + 1);  // offloads counted on at each run
  for (std::size_t i = 0; i < absences.size(); ++i) {
    if (!is_kept[i]) continue;
    Move move = move_of(absences[i]);
    move.is_clean = absences[i].is_clean;
    move.after.runs = absences[i].last + 1;
    offload_index[i] = static_cast<std::uint32_t>(plan.offloads.size());
    plan.offloads.push_back(move);
    needed_by[absences[i].needed] = offload_index[i] + 1;
  }
  std::partial_sum(needed_by.begin(), needed_by.end(), needed_by.begin(),
                   [](std::uint32_t a, std::uint32_t b) { return std::max(a, b); });

  std::vector<std::uint32_t> landed_by(plan.runs.size() + 1);  // prefetches used at each run
  for (const Admission& admission : admissions) {
    const Absence& absence = absences[admission.absence];
    Move move = move_of(absence);
    move.after.runs = admission.from;
    move.after.offloads = std::max(offload_index[admission.absence] + 1, needed_by[admission.from]);
    plan.prefetches.push_back(move);
    landed_by[absence.next] = static_cast<std::uint32_t>(plan.prefetches.size());
  }
  std::uint32_t landed = 0;
  for (Position p = 0; p < plan.runs.size(); ++p) {
    landed = std::max(landed, landed_by[p]);
    plan.runs[p].after = {.runs = p, .offloads = needed_by[p], .prefetches = landed};
  }
}

}  // namespace spillway::prefetch
