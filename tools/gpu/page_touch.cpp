#include "tools/gpu/page_touch.h"

#include <chrono>
#include <cstddef>

namespace spillway::gpu {

double touch_pages(um::Range range) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kPage = 4096;
  const Clock::time_point begin = Clock::now();
  for (std::size_t at = 0; at < range.size(); at += kPage) {
    // A read that the compiler may not leave out.
    static_cast<void>(*static_cast<volatile std::byte*>(range.data() + at));
  }
  return std::chrono::duration<double>{Clock::now() - begin}.count();
}

}  // namespace spillway::gpu
