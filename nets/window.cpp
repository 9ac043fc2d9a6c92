#include "nets/window.h"

#include <algorithm>

namespace spillway::nets {

Extent dilated(const Extent& kernel, const Extent& dilation) {
  return {.height = (kernel.height - 1) * dilation.height + 1,
          .width = (kernel.width - 1) * dilation.width + 1};
}

std::size_t positions(std::size_t size, const Window& window) {
  const std::size_t padded = size + 2 * window.padding;
  return padded < window.kernel ? 0 : (padded - window.kernel) / window.stride + 1;
}

std::size_t positions_rounded_up(std::size_t size, const Window& window) {
  const std::size_t full = positions(size, window);
  const std::size_t padded = size + 2 * window.padding;
  const bool has_rest = full > 0 && (full - 1) * window.stride + window.kernel < padded;
  return has_rest && full * window.stride < size + window.padding ? full + 1 : full;
}

std::size_t spread(std::size_t count, const Window& window, std::size_t more) {
  const std::size_t covered = (count - 1) * window.stride + window.kernel + more;
  return covered - std::min(covered, 2 * window.padding);
}

}  // namespace spillway::nets
