#pragma once

#include <functional>

#include "um/bytes.h"

namespace spillway::um {

/// What a probe of the machine's memory does.
struct MemoryToTouch {
  std::function<Bytes()> available;  ///< as the system says now
  /// Takes so many bytes more, until the probe is over. False when the system refuses them.
  std::function<bool(Bytes)> take;
  /// Gives a machine a moment to grow.
  std::function<void()> pause;
};

/// What there is for whoever wants `wanted` bytes, of a virtual machine that gets memory only as it
/// uses it: what is available when some has been touched, and what was touched. Goes on as long as
/// the machine makes up for that, until `wanted` bytes are there. Never takes more than half of
/// what was available at first, nor more than 4 GiB, before the machine has made up for it: a
/// machine whose memory does not grow is left with the rest. Touches nothing for whoever wants
/// hundreds of times what is available: no machine grows so far.
[[nodiscard]] Bytes available_when_touched(Bytes wanted, const MemoryToTouch& memory);

/// The same of this machine; what was touched is given back.
[[nodiscard]] Bytes available_when_touched(Bytes wanted);

}  // namespace spillway::um
