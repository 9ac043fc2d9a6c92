#pragma once

#include <optional>

#include "um/bandwidth.h"
#include "um/nanoseconds.h"

namespace spillway::um {

/// The link between near and far memory, the same each way.
struct LinkOptions {
  std::optional<Bandwidth> bandwidth;  ///< nothing: as fast as the machine copies
  Nanoseconds latency{0};              ///< added to each move of a page or copy
};

}  // namespace spillway::um
