#pragma once

#include "prefetch/profile.h"
#include "um/bytes.h"
#include "um/dropin/space.h"

namespace spillway::dropin {

/// A link whose bandwidth is known.
[[nodiscard]] prefetch::LinkProfile link_of(um::Bandwidth bandwidth);

/// How fast the space moves pages: takes a few of them for a moment, sends them far and brings them
/// back, the best of three. Where the space has no room, a cautious guess.
/// Takes as long as a few dozen pages do; other moves of the space go on, and count for it.
[[nodiscard]] prefetch::LinkProfile measure_link(um::Space& space);

}  // namespace spillway::dropin
