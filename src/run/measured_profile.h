#pragma once

#include <stop_token>
#include <string>

#include "prefetch/files/machine.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "src/ops/backend.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/run/profiler.h"
#include "um/bytes.h"
#include "um/options.h"

namespace spillway {

/// A workload to measure, and the memory that the measurement may use.
struct Measurement {
  const Workload& workload;
  um::Bytes limit;  ///< of near memory, which is freed again
  /// The mode and space of training, which define far memory, link and paging.
  MemoryMode mode;
  const um::ManagedOptions& space;
  bool with_link = true;         ///< false: keeps the link of a default LinkProfile
  bool with_far_updates = true;  ///< false: does not measure updates on the far side
};

/// Returns whether plans of `workload` depend on times. They do not if everything stays resident
/// and each task has one algorithm.
[[nodiscard]] bool depends_on_times(const Workload& workload, MemoryMode mode);

/// Returns a machine model's times, for when no plan depends on times.
[[nodiscard]] prefetch::Profile unmeasured_profile(const Workload& workload,
                                                   const prefetch::Machine& model);

/// Measures the link and the training step of a workload. Throws: um::Error at once when the device
/// cannot make such a space; um::OutOfMemory; Interrupted when `stop` is requested.
[[nodiscard]] prefetch::Profile measure_profile(ExecutionContext& context,
                                                const Measurement& measurement,
                                                const std::stop_token& stop,
                                                const OnProgress& on_progress);

/// Reads the profile of steps of `graph` from a file, and sets the link's behaviour for `mode`.
/// Unified memory is unmapped while it leaves; explicit copies leave the source readable. Throws:
/// um::Error that names the file.
[[nodiscard]] prefetch::Profile profile_of_file(const std::string& path,
                                                const prefetch::TaskGraph& graph, MemoryMode mode);

/// Returns the least bytes of unified memory (whole pages) for any plan of the steps of `workload`:
/// the most that one task needs at once. Plans that discard little take more, since a block keeps
/// its addresses while its content is far (prefetch/slab_placement.h).
[[nodiscard]] um::Bytes min_slab(const Workload& workload);

}  // namespace spillway
