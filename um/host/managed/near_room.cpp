#include "um/host/managed/near_room.h"

#include <chrono>

#include "um/host/managed/fatal.h"

namespace spillway::um {
namespace {

using Clock = Link::Clock;

/// How long a fault waits for other launches to end before it gives up.
constexpr std::chrono::seconds kPatience{10};

}  // namespace

NearRoom::NearRoom(bool writes_are_declared, const PageGeometry& geometry, PageTable& table,
                   PageMoves& moves)
    : writes_are_declared_{writes_are_declared},
      too_small_{"the near memory of " + to_string(geometry.slots * geometry.page) +
                 " is too small for the pages in use; give it more"},
      table_{table},
      moves_{moves} {}

NearRoom::Result NearRoom::find(PageTable::Lock& lock) {
  while (true) {
    if (const auto slot = table_.take_free_slot()) return {.slot = slot, .failure = nullptr};
    if (const auto victim = table_.victim()) return evict(lock, *victim);
    if (!moves_.any_leaving()) return {.slot = std::nullopt, .failure = nullptr};
    table_.wait(lock);
  }
}

SlotIndex NearRoom::find_or_end(PageTable::Lock& lock) noexcept {
  std::optional<Clock::time_point> end;  // of patience with other launches
  while (true) {
    const Result room = find(lock);
    if (room.slot) return *room.slot;
    if (room.failure != nullptr) {
      if (!writes_are_declared_) fatal_fault(room.failure);
      if (const auto slot = evict_unsaved(lock)) return *slot;
      continue;
    }
    if (moves_.any_filling()) {
      table_.wait(lock);
      continue;
    }
    if (!end) end = Clock::now() + kPatience;
    if (table_.launches() <= 1 || !table_.wait_until(lock, *end)) fatal(too_small_);
  }
}

/// The slot that `victim` had, still charged; when its content cannot be saved, the failure.
NearRoom::Result NearRoom::evict(PageTable::Lock& lock, PageIndex victim) {
  const PageMoves::Move move = moves_.start_leaving(lock, victim);
  if (!moves_.finish_leaving(lock, move)) return {.slot = std::nullopt, .failure = move.failure};
  ++moves_.counters().evictions;
  return {.slot = move.slot, .failure = nullptr};
}

/// Takes the next page away without saving it, for a fault in a launch: the launch goes on to its
/// end, where check() tells that content is lost.
std::optional<SlotIndex> NearRoom::evict_unsaved(PageTable::Lock& lock) {
  const auto victim = table_.victim();
  if (!victim) return std::nullopt;
  Page& page = table_[*victim];
  if (page.content == Content::kNear) page.content = Content::kNone;
  return evict(lock, *victim).slot;
}

}  // namespace spillway::um
