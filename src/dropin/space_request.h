#pragma once

#include <string>

#include "um/dropin/space.h"
#include "um/dropin/spillway_um.h"

namespace spillway::dropin {

/// A request for a space.
struct SpaceRequest {
  std::string device;
  um::SpaceOptions options;
};

/// Throws: um::Misuse when `options` are null, of another version, or inconsistent.
[[nodiscard]] SpaceRequest read_options(const spillway_um_options* options);

/// Reads the default space's options from the environment. Throws: um::Misuse.
[[nodiscard]] SpaceRequest read_environment();

}  // namespace spillway::dropin
