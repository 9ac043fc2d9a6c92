#include "um/host/far/copy_bytes.h"

#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "um/error.h"

namespace spillway::um {
#ifdef __SSE2__
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kStreamFrom = 64 << 10;  // smaller pieces are better left in the cache

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
