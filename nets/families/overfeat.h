#pragma once

#include <cstddef>

#include "nets/network.h"

namespace spillway::nets {

/// Sermanet et al., 2013 ("OverFeat", arXiv:1312.6229), table 1, the fast model, for images of
/// 231x231 (71x71 and more), with dropout on layers 6 and 7 (section 3.1). convnet-benchmarks has
/// the same table, without dropout.
[[nodiscard]] Network overfeat(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
