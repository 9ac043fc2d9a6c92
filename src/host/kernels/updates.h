#pragma once

#include <algorithm>
#include <cstddef>

#include "src/host/layout/parameter_layout.h"
#include "src/ops/parameter.h"

namespace spillway::host {

/// Smallest number of elements worth waking other threads for.
constexpr std::size_t kWorthATeam = 1U << 15U;

/// Calls `element` with each index below `count`, in parallel.
template <class Element>
void update_all(Element element, std::size_t count) {
#pragma omp parallel for simd schedule(static) firstprivate(element) if (parallel \
                                                                         : count >= kWorthATeam)
  for (std::size_t i = 0; i < count; ++i) element(i);
}

/// The floats that an update covers: all of a part, padding included.
struct UpdateRange {
  std::size_t first;  ///< offset in the parameters, which are one whole block
  std::size_t count;
  std::size_t decayed;   ///< number of floats at the front that weight decay applies to
  std::size_t gradient;  ///< offset in the gradient
  std::size_t written;   ///< offset in the block of new parameters

  [[nodiscard]] static UpdateRange of(const Layout& layout, const ParameterSpec& spec,
                                      const ParameterPart& part, bool decays_all) {
    const auto [range, gradient, written] =
        UpdatedFloats::of(part, cuts_of(layout, spec).range(part));
    const std::size_t of_weights = has_weights(spec) ? parts_of(layout, spec).first : 0;
    const std::size_t weights = decays_all ? range.end : of_weights;
    return {.first = range.begin,
            .count = range.count(),
            .decayed = std::clamp(weights, range.begin, range.end) - range.begin,
            .gradient = gradient,
            .written = written};
  }
};

}  // namespace spillway::host
