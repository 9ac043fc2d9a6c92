#include "src/dropin/measure_link.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "um/error.h"
#include "um/memory.h"

namespace spillway::dropin {
namespace {

using Clock = std::chrono::steady_clock;

/// Of one move beside its transfer: a thread that sleeps is woken.
constexpr um::Nanoseconds kLatency{20'000};
constexpr um::Bandwidth kGuess{2e9};
constexpr std::uint64_t kPages = 8;
constexpr int kTimes = 3;

um::Nanoseconds time_of_move(um::Space& space, const std::byte* pages, um::Bytes size,
                             um::MemoryTier tier) {
  const auto begin = Clock::now();
  space.prefetch(pages, size, tier);
  space.synchronize();
  return std::max(um::Nanoseconds{1}, um::Nanoseconds{Clock::now() - begin});
}

um::Bandwidth speed(um::Bytes size, um::Nanoseconds time) {
  const um::Nanoseconds moving = std::max(time - kLatency, time / 2);
  return um::Bandwidth{static_cast<double>(size.count()) / um::seconds(moving)};
}

}  // namespace

prefetch::LinkProfile link_of(um::Bandwidth bandwidth) {
  return {.offload = bandwidth, .prefetch = bandwidth, .latency = kLatency};
}

prefetch::LinkProfile measure_link(um::Space& space) {
  prefetch::LinkProfile link = link_of(kGuess);
  const um::Bytes near = space.near_budget();
  const um::Bytes size = std::max(
      space.page(),
      std::min(kPages * space.page(), um::round_down(um::Bytes{near.count() / 4}, space.page())));
  std::byte* pages = nullptr;
  try {
    pages = space.allocate(size, space.page());
  } catch (const um::OutOfMemory&) {
    return link;
  }
  std::memset(pages, 1, size.count());
  um::Nanoseconds out{um::Nanoseconds::max()};
  um::Nanoseconds in{um::Nanoseconds::max()};
  try {
    // On a GPU they are far now: the first offload would move nothing.
    static_cast<void>(time_of_move(space, pages, size, um::MemoryTier::kNear));
    for (int i = 0; i < kTimes; ++i) {
      out = std::min(out, time_of_move(space, pages, size, um::MemoryTier::kFar));
      in = std::min(in, time_of_move(space, pages, size, um::MemoryTier::kNear));
    }
  } catch (...) {
    space.free(pages);
    throw;
  }
  space.free(pages);
  link.offload = speed(size, out);
  link.prefetch = speed(size, in);
  return link;
}

}  // namespace spillway::dropin
