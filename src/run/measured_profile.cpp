#include "src/run/measured_profile.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
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

// Returns the times of `part` if `whole`, measured as `profile`, has all its tasks.
std::optional<Profile> part_of(const RepeatedStep& whole, const Profile& profile,
                               const RepeatedStep& part) {
  if (whole.batch != part.batch) return std::nullopt;
  std::unordered_map<std::string_view, std::size_t> by_name;
  for (std::size_t t = 0; t < whole.step.graph.tasks.size(); ++t) {
    by_name.emplace(whole.step.graph.tasks[t].name, t);
  }
  Profile times = profile;
  times.graph = fingerprint(part.step.graph);
  times.durations.clear();
  for (const prefetch::Task& task : part.step.graph.tasks) {
    const auto found = by_name.find(task.name);
    if (found == by_name.end()) return std::nullopt;
    times.durations.push_back(profile.durations[found->second]);
  }
  return times;
}

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
  um::Bytes max = std::max(page, max_needed(workload.evaluation().graph, page));
  for (const RepeatedStep& part : workload.training_steps()) {
    max = std::max(max, max_needed(part.step.graph, page));
  }
  return max;
}

bool depends_on_times(const Workload& workload, MemoryMode mode) {
  const auto has_choice = [](const prefetch::TaskGraph& graph) {
    return std::ranges::any_of(
        graph.tasks, [](const prefetch::Task& task) { return task.algorithms.size() > 1; });
  };
  return mode != MemoryMode::kResident || has_choice(workload.evaluation().graph) ||
         std::ranges::any_of(workload.training_steps(),
                             [&](const RepeatedStep& part) { return has_choice(part.step.graph); });
}

std::vector<Profile> unmeasured_profiles(const Workload& workload, const prefetch::Machine& model) {
  std::vector<Profile> profiles;
  for (const RepeatedStep& part : workload.training_steps()) {
    profiles.push_back(prefetch::model_profile(part.step.graph, model));
    profiles.back().source = "not measured";
  }
  return profiles;
}

std::vector<Profile> measure_profiles(ExecutionContext& context, const Measurement& measurement,
                                      const std::stop_token& stop, const OnProgress& on_progress) {
  const Workload& workload = measurement.workload;
  const um::Bytes limit = measurement.limit;
  um::ManagedOptions options = measurement.space;
  options.page = workload.page();
  if (measurement.with_link) expect_space(*context.device, measurement, options);
  const std::vector<RepeatedStep>& steps = workload.training_steps();
  std::vector<Profile> profiles(steps.size());
  // Backwards: the tasks of a sub-step are among those of a later one.
  for (std::size_t i = steps.size(); i-- > 0;) {
    std::optional<Profile> known;
    if (i + 1 < steps.size()) known = part_of(steps[i + 1], profiles[i + 1], steps[i]);
    profiles[i] = known ? *std::move(known)
                        : measure_tasks(steps[i].step, *context.backend, context.device->memory(),
                                        std::min(limit, workload.need().resident), *context.compute,
                                        stop, on_progress);
  }
  prefetch::LinkProfile link;
  if (measurement.with_link) {
    link = measure_link({.device = *context.device,
                         .mode = measurement.mode,
                         .options = options,
                         .limit = limit,
                         .with_far_updates = measurement.with_far_updates},
                        steps.front().step, *context.backend, profiles.front(), *context.compute,
                        stop);
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    profiles[i].link = link;
    profiles[i].far_updates = prefetch::far_update_times(steps[i].step.graph, link);
  }
  return profiles;
}

Profile measure_profile(ExecutionContext& context, const Workload& workload, um::Bytes limit,
                        MemoryMode mode, const um::ManagedOptions& space,
                        const std::stop_token& stop, const OnProgress& on_progress) {
  const Measurement measurement{.workload = workload,
                                .limit = limit,
                                .mode = mode,
                                .space = space,
                                .with_link = mode != MemoryMode::kResident};
  return std::move(measure_profiles(context, measurement, stop, on_progress).front());
}

Profile profile_of_file(const std::string& path, const prefetch::TaskGraph& graph,
                        MemoryMode mode) {
  Profile profile = prefetch::read_profile(prefetch::JsonFile{path}, graph);
  profile.link.copies_while_read = mode != MemoryMode::kManaged;
  return profile;
}

}  // namespace spillway
