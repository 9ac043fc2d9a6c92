#include "src/measured_profile.h"

#include <algorithm>

#include "src/link_profiler.h"

namespace spillway {

prefetch::Profile measure_profile(Processor& processor, const Workload& workload, um::Bytes limit,
                                  MemoryMode mode, const um::ManagedOptions& space,
                                  const std::atomic<bool>& stop, const OnProgress& on_progress) {
  prefetch::Profile profile = measure_tasks(
      workload.training(), *processor.backend, processor.device->memory(),
      std::min(limit, workload.need().resident), *processor.compute, stop, on_progress);
  um::ManagedOptions options = space;
  options.page = workload.page();
  profile.link =
      measure_link({.device = *processor.device, .mode = mode, .options = options, .limit = limit},
                   workload.training(), *processor.backend, profile, *processor.compute, stop);
  return profile;
}

}  // namespace spillway
