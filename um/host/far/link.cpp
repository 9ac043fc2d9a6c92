#include "um/host/far/link.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "um/error.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace spillway::um {

Link::Clock::time_point Link::reserve(Bytes size) noexcept {
  const Clock::rep now = Clock::now().time_since_epoch().count();
  const Clock::rep duration = Clock::duration{options_.latency + time_of(size)}.count();
  Clock::rep free_at = free_at_.load(std::memory_order_relaxed);
  Clock::rep end = 0;
  do {
    end = std::max(now, free_at) + duration;
  } while (!free_at_.compare_exchange_weak(free_at, end, std::memory_order_relaxed));
  return Clock::time_point{Clock::duration{end}};
}

Nanoseconds Link::time_of(Bytes size) const noexcept {
  return options_.bandwidth ? size / *options_.bandwidth : Nanoseconds{0};
}

#ifdef __SSE2__
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kStreamFrom = 64 << 10;  // smaller pieces should stay in the cache

bool starts_a_line(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kLine == 0;
}

/// Requires: `lines` whole cache lines at both aligned addresses.
void stream_lines(std::byte* to, const std::byte* from, std::size_t lines) {
  auto* target = reinterpret_cast<__m128i*>(to);
  const auto* source = reinterpret_cast<const __m128i*>(from);
  for (std::size_t i = 0; i < lines; ++i, target += 4, source += 4) {
    const __m128i a = _mm_load_si128(source);
    const __m128i b = _mm_load_si128(source + 1);
    const __m128i c = _mm_load_si128(source + 2);
    const __m128i d = _mm_load_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  _mm_sfence();
}

}  // namespace
#endif

void copy_bytes(std::span<std::byte> to, std::span<const std::byte> from) {
  expects(to.size() == from.size(), "a copy has as much room as content");
  std::size_t streamed = 0;
#ifdef __SSE2__
  if (to.size() >= kStreamFrom && starts_a_line(to.data()) && starts_a_line(from.data())) {
    stream_lines(to.data(), from.data(), to.size() / kLine);
    streamed = to.size() / kLine * kLine;
  }
#endif
  if (streamed < to.size()) {
    std::memcpy(to.data() + streamed, from.data() + streamed, to.size() - streamed);
  }
}

}  // namespace spillway::um
