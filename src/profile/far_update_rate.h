#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/profile/loaded_link.h"
#include "src/profile/repeated_launch.h"
#include "src/step/step.h"

namespace spillway {

/// Starts what keeps the processor busy meanwhile; null: nothing does.
using StartLoad = std::function<std::unique_ptr<RepeatedLaunch>()>;

/// Measures how fast the far side updates, beside a load, and how much that slows the load down:
/// LinkProfile::far_update and compute_speed_while_updating. Updates like those of `step` go over
/// the far memory of `link`, all of which is near before and afterwards. Leaves `result` as it is
/// where the device does not update on the far side. Throws: um::Error when far memory fails;
/// Interrupted when `stop` is requested.
void measure_far_update(LinkUnderTest& link, const Step& step, const Backend& backend,
                        const StartLoad& start_load, const std::stop_token& stop,
                        prefetch::LinkProfile& result);

}  // namespace spillway
