#include "um/dropin/moves_under_way.h"

namespace spillway::um {

void MovesUnderWay::start(MemoryTier to) {
  const std::lock_guard lock{mutex_};
  ++of(to).started;
}

void MovesUnderWay::start_below(std::uint64_t max, MemoryTier to) {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return of(to).started < of(to).ended + max; });
  ++of(to).started;
}

void MovesUnderWay::end(MemoryTier to) noexcept {
  const std::lock_guard lock{mutex_};
  ++of(to).ended;
  changed_.notify_all();
}

void MovesUnderWay::wait() {
  std::unique_lock lock{mutex_};
  for (const Count& count : counts_) {
    const std::uint64_t so_far = count.started;
    changed_.wait(lock, [&] { return count.ended >= so_far; });
  }
}

}  // namespace spillway::um
