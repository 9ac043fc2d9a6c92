#pragma once

#include <algorithm>
#include <cstddef>

#include "src/host/layout/parameter_layout.h"
#include "src/ops/parameter.h"

namespace spillway::host {

/// Fewer elements than this are updated faster by one thread than another one wakes up.
constexpr std::size_t kWorthATeam = 1U << 15U;

/// Calls `element` with each number below `count`, shared among the threads.
template <class Element>
void update_all(Element element, std::size_t count) {
#pragma omp parallel for simd schedule(static) firstprivate(element) if (parallel \
                                                                         : count >= kWorthATeam)
  for (std::size_t i = 0; i < count; ++i) element(i);
}

/// What an update goes over: all floats of a part of a block, padding included.
struct UpdateRange {
  std::size_t first;  ///< of the parameters, which are one block: gradients begin with their part
  std::size_t count;
  std::size_t decayed;   ///< of them, those from the first on to which weight decay applies
  std::size_t gradient;  ///< where it begins in the gradient
  std::size_t written;   ///< and in the block that gets the new parameters

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
