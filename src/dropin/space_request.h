#pragma once

#include <string>

#include "um/dropin/space.h"
#include "um/dropin/spillway_um.h"

namespace spillway::dropin {

/// A space that somebody wants.
struct SpaceRequest {
  std::string device;
  um::SpaceOptions options;
};

/// Throws: um::Misuse when they are null, of another version, or make no sense.
[[nodiscard]] SpaceRequest read_options(const spillway_um_options* options);

/// The default space's, of the environment. Throws: um::Misuse.
[[nodiscard]] SpaceRequest read_environment();

}  // namespace spillway::dropin
