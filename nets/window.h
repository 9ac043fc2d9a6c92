#pragma once

#include <cstddef>

#include "nets/shape.h"

namespace spillway::nets {

/// A window along one side of an image.
struct Window {
  std::size_t kernel;
  std::size_t stride;
  std::size_t padding;
};

/// What a kernel covers when its neighbours are apart.
[[nodiscard]] Extent dilated(const Extent& kernel, const Extent& dilation);

/// Positions of a window that moves over `size` numbers and the padding on both sides; 0 when the
/// window is larger than that.
[[nodiscard]] std::size_t positions(std::size_t size, const Window& window);

/// The same, and one more for a rest that fills no window, unless that one would start behind the
/// numbers.
[[nodiscard]] std::size_t positions_rounded_up(std::size_t size, const Window& window);

/// Numbers that so many positions of a window cover without the padding, and `more`; 0 when the
/// padding is all of it.
[[nodiscard]] std::size_t spread(std::size_t count, const Window& window, std::size_t more);

}  // namespace spillway::nets
