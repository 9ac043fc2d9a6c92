#include "src/run/step_times.h"

#include <exception>
#include <utility>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "src/plan/predicted_step.h"
#include "um/device.h"
#include "um/error.h"

namespace spillway {

using prefetch::Profile;

prefetch::Machine modelled_machine(const um::Device& device,
                                   const std::function<void(const std::string&)>& on_unknown) {
  if (const auto known = prefetch::machine_of(device.name())) return *known;
  prefetch::Machine model = prefetch::find_machine("a100");
  if (on_unknown) {
    on_unknown("no times of " + device.name() +
               " are built in; the batch is cut as for the machine '" + model.name + "'");
  }
  return model;
}

Profile StepTimes::find(const Measurement& wanted,
                        const std::function<prefetch::TaskGraph()>& profiled, bool is_needed) {
  const Workload& workload = wanted.workload;
  are_timed_ = is_needed || !options_.file.empty() || depends_on_times(workload, wanted.mode);
  if (!are_timed_) return unmeasured_profile(workload, modelled_machine(*context_.device));
  if (options_.file.empty()) return kept_or_measured(wanted);
  const prefetch::TaskGraph graph = profiled();
  const MicroBatches& batches = workload.micro_batches();
  if (batches.count() > 1 &&
      !prefetch::is_made_for(graph, prefetch::JsonFile{options_.file}.root())) {
    const std::string size = std::to_string(batches.size);
    throw um::Error{options_.file + " is not of one micro-batch of " + size +
                    ", as this training needs; make it by spillway profile --batch " + size +
                    " with the other flags of this training"};
  }
  return profile_for(workload.training().graph, graph,
                     profile_of_file(options_.file, graph, wanted.mode));
}

Profile StepTimes::kept_or_measured(const Measurement& wanted) {
  const auto measure = [&] {
    return measure_profile(context_, wanted, stop_, [&](double fraction) {
      if (events_.on_measuring) events_.on_measuring(fraction);
    });
  };
  if (options_.cache.empty()) return measure();
  key_ = profile_key(context_, wanted, ranks_);
  auto kept = KeptProfiles{options_.cache}.find(*key_, wanted.workload);
  kept_since_.reset();
  if (kept) {
    kept_since_ = std::move(kept->measured);
    return std::move(kept->profile);
  }
  Profile profile = measure();
  if (options_.adds_to_cache) keep(wanted.workload, profile);
  return profile;
}

// A failure only has the next run measure again.
void StepTimes::keep(const Workload& workload, const Profile& profile) const {
  try {
    KeptProfiles{options_.cache}.keep(*key_, title_, workload, profile);
  } catch (const std::exception& error) {
    if (events_.on_warning) {
      events_.on_warning(std::string{"measured times are not kept: "} + error.what());
    }
  }
}

bool StepTimes::forget() const {
  return key_ && options_.adds_to_cache && KeptProfiles{options_.cache}.forget(*key_);
}

}  // namespace spillway
