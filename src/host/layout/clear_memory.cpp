#include "src/host/layout/clear_memory.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <cstring>

namespace spillway::host {

void clear_memory(um::Range block) {
#if defined(__SSE2__)
  auto* const begin = reinterpret_cast<__m128i*>(block.data());
  for (std::size_t i = 0; i < block.size() / sizeof(__m128i); ++i) {
    _mm_stream_si128(begin + i, _mm_setzero_si128());
  }
  _mm_sfence();
#else
  std::memset(block.data(), 0, block.size());
#endif
}

}  // namespace spillway::host
