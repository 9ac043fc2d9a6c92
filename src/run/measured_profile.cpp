#include "src/run/measured_profile.h"

#include <algorithm>
#include <utility>

#include "prefetch/block_sizes.h"
#include "prefetch/far_update.h"
#include "prefetch/files/json.h"
#include "prefetch/files/profile_file.h"
#include "prefetch/planner.h"
#include "src/run/link_profiler.h"
#include "src/run/loaded_link.h"
#include "um/memory.h"

namespace spillway {
namespace {

// Returns the movable bytes that any task needs at once, with the smallest workspace.
um::Bytes max_needed(const prefetch::TaskGraph& graph, um::Bytes page) {
  const prefetch::BlockSizes block_sizes{graph, page};
  return prefetch::near_need(graph, block_sizes).smallest - block_sizes.pinned();
}

using prefetch::Profile;

// Throws now if the device refuses the space, before tasks are measured and a plan is made.
void expect_space(um::Device& device, const Measurement& measurement, um::ManagedOptions options) {
  if (measurement.mode == MemoryMode::kManaged && options.far.file.empty()) {
    options.size = min_slab(measurement.workload);
    options.near = std::min(2 * options.page, options.size);  // the least a host maps
    um::Ledger ledger{options.near};
    static_cast<void>(device.make_managed_space(options, ledger));
    return;
  }
  static_cast<void>(make_link_under_test(device, measurement.mode, options, options.page));
}

}  // namespace

um::Bytes min_slab(const Workload& workload) {
  const um::Bytes page = workload.page();
  return std::max({page, max_needed(workload.evaluation().graph, page),
                   max_needed(workload.training().graph, page)});
}

bool depends_on_times(const Workload& workload, MemoryMode mode) {
  const auto has_choice = [](const prefetch::TaskGraph& graph) {
    return std::ranges::any_of(
        graph.tasks, [](const prefetch::Task& task) { return task.algorithms.size() > 1; });
  };
  return mode != MemoryMode::kResident || has_choice(workload.evaluation().graph) ||
         has_choice(workload.training().graph);
}

Profile unmeasured_profile(const Workload& workload, const prefetch::Machine& model) {
  Profile profile = prefetch::model_profile(workload.training().graph, model);
  profile.source = "not measured";
  return profile;
}

Profile measure_profile(ExecutionContext& context, const Measurement& measurement,
                        const std::stop_token& stop, const OnProgress& on_progress) {
  const Workload& workload = measurement.workload;
  const um::Bytes limit = measurement.limit;
  um::ManagedOptions options = measurement.space;
  options.page = workload.page();
  if (measurement.with_link) expect_space(*context.device, measurement, options);
  const Step& step = workload.training();
  Profile profile =
      measure_tasks(step, *context.backend, context.device->memory(),
                    std::min(limit, workload.need().resident), *context.compute, stop, on_progress);
  if (measurement.with_link) {
    profile.link = measure_link({.device = *context.device,
                                 .mode = measurement.mode,
                                 .options = options,
                                 .limit = limit,
                                 .with_far_updates = measurement.with_far_updates},
                                step, *context.backend, profile, *context.compute, stop);
  }
  profile.far_updates = prefetch::far_update_times(step.graph, profile.link);
  return profile;
}

Profile profile_of_file(const std::string& path, const prefetch::TaskGraph& graph,
                        MemoryMode mode) {
  Profile profile = prefetch::read_profile(prefetch::JsonFile{path}, graph);
  profile.link.copies_while_read = mode != MemoryMode::kManaged;
  return profile;
}

}  // namespace spillway
