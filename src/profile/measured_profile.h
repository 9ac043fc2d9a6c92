#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "prefetch/files/machine.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "src/ops/execution_context.h"
#include "src/plan/memory_mode.h"
#include "src/plan/workload.h"
#include "src/profile/profiler.h"
#include "um/bytes.h"
#include "um/options.h"

namespace spillway {

/// What there is to measure, and what may be used for that.
struct Measurement {
  const Workload& workload;
  um::Bytes limit;  ///< of near memory, which is given back
  /// What far memory, link and paging will be.
  MemoryMode mode;
  const um::ManagedOptions& space;
  bool with_link = true;         ///< else it is that of a LinkProfile
  bool with_far_updates = true;  ///< likewise how fast the far side updates
};

/// Whether a plan of `workload` depends on times. It does not where all stays resident and each
/// task has one algorithm.
[[nodiscard]] bool depends_on_times(const Workload& workload, MemoryMode mode);

/// What stands in for measured times where no plan depends on them: those of a machine's model.
[[nodiscard]] std::vector<prefetch::Profile> unmeasured_profiles(const Workload& workload,
                                                                 const prefetch::Machine& model);

/// Measures the training steps of a workload and the link: one profile for each. A
/// sub-step whose tasks are all in another one of as many samples takes their times, by name.
/// Throws: um::Error at once when the device cannot make such a space; um::OutOfMemory; Interrupted
/// when `stop` is requested.
[[nodiscard]] std::vector<prefetch::Profile> measure_profiles(ExecutionContext& context,
                                                              const Measurement& measurement,
                                                              const std::stop_token& stop,
                                                              const OnProgress& on_progress);

/// The same of a workload whose batch is not cut.
[[nodiscard]] prefetch::Profile measure_profile(ExecutionContext& context, const Workload& workload,
                                                um::Bytes limit, MemoryMode mode,
                                                const um::ManagedOptions& space,
                                                const std::stop_token& stop,
                                                const OnProgress& on_progress);

/// The profile in a file, of steps of `graph`, for memory mode `mode`: unified memory is unmapped
/// as it leaves, and explicit copies leave what they copy where it is, whatever link the profile is
/// of. Throws: um::Error that names the file.
[[nodiscard]] prefetch::Profile profile_of_file(const std::string& path,
                                                const prefetch::TaskGraph& graph, MemoryMode mode);

}  // namespace spillway
