#pragma once

#include <stop_token>

#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/plan/memory_mode.h"
#include "src/step/step.h"
#include "um/device.h"
#include "um/options.h"
#include "um/stream.h"

namespace spillway {

/// A link to measure, and what may be used for that.
struct LinkSubject {
  um::Device& device;
  MemoryMode mode;             ///< managed: moves of unified memory; else explicit copies
  um::ManagedOptions options;  ///< page, far memory, link, paging; sizes are chosen here
  um::Bytes limit;             ///< of near memory
  bool with_far_updates = true;
};

/// Measures bandwidth each way while the stream runs the longest task of `step`, and how much that
/// task slows down; likewise updates on the far side (measure_far_update()); and, without it, what
/// a move takes beside its bytes and whether both directions move at once. `profile` says which
/// task is the longest. Throws: Interrupted when `stop` is requested.
[[nodiscard]] prefetch::LinkProfile measure_link(const LinkSubject& subject, const Step& step,
                                                 const Backend& backend,
                                                 const prefetch::Profile& profile,
                                                 um::Stream& stream, const std::stop_token& stop);

}  // namespace spillway
