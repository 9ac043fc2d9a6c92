#pragma once

#include "src/bench/train/train_comparison.h"
#include "um/bytes.h"

namespace spillway {

/// Memory that a bench may take.
struct TrainRoom {
  um::Bytes near;  ///< free on the device
  um::Bytes ram;   ///< free for far memory and images
  /// The device's memory is the RAM, as the host's is: both together may take no more than `ram`.
  bool is_shared = true;
};

/// Throws: um::Error when a trial of `comparison` would take more memory than there is, near and
/// far, which is a file where `has_far_file`. Resident trials are left out: they fail where they do
/// not fit.
void expect_room(const TrainComparison& comparison, const TrainRoom& room, bool has_far_file);

}  // namespace spillway
