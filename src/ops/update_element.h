#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "src/ops/optimizers.h"

namespace spillway {

/// Applies an update to float `i` of a range of the parameters. All pointers point to the first
/// float of the range.
template <class Rates, std::size_t kCount>
struct UpdateElement {
  Rates rates;
  std::size_t decayed;  ///< number of floats at the front that decay
  const float* old_w;
  const float* dw;
  float* w;                          ///< may be old_w or dw
  std::array<float*, kCount> state;  ///< updated in place

  void operator()(std::size_t i) const {
    [&]<std::size_t... kStates>(std::index_sequence<kStates...> /*states*/) {
      std::array<float, kCount> numbers{state[kStates][i]...};
      const float updated = rates(old_w[i], dw[i], i < decayed, numbers);
      ((state[kStates][i] = numbers[kStates]), ...);
      w[i] = updated;
    }
    (std::make_index_sequence<kCount>{});
  }
};

}  // namespace spillway
