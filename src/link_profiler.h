#pragma once

#include <atomic>

#include "prefetch/profile.h"
#include "src/backend.h"
#include "src/step.h"
#include "um/device.h"
#include "um/managed_space.h"
#include "um/stream.h"

namespace spillway {

/// Measures the link of a managed space made with `options` (page, far memory, link, paging; its
/// sizes are chosen here, at most `limit` bytes of near memory): bandwidth each way while the
/// stream runs the longest forward task of `step`, and how much that task slows down. `profile`
/// says which is the longest. Throws: Interrupted when `stop` becomes true.
[[nodiscard]] prefetch::LinkProfile measure_link(um::Device& device, um::ManagedOptions options,
                                                 um::Bytes limit, const Step& step,
                                                 const Backend& backend,
                                                 const prefetch::Profile& profile,
                                                 um::Stream& stream, const std::atomic<bool>& stop);

}  // namespace spillway
