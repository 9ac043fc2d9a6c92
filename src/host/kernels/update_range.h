#pragma once

#include <cstddef>

#include "src/host/layout/parameter_layout.h"
#include "src/ops/parameter.h"

namespace spillway::host {

/// Fewer elements than this are updated faster by one thread than another one wakes up.
constexpr std::size_t kWorthATeam = 1U << 15U;

/// What an update goes over: all floats of a block, padding included.
struct UpdateRange {
  std::size_t count;
  std::size_t decayed;  ///< of them, those from the first on to which weight decay applies

  [[nodiscard]] static UpdateRange of(const Layout& layout, const ParameterSpec& spec) {
    const ParameterParts parts = parts_of(layout, spec);
    return {.count = parts.total, .decayed = has_weights(spec) ? parts.first : 0};
  }
};

}  // namespace spillway::host
