#include "src/plan/bucket_time.h"

#include <cstddef>

#include "src/plan/predicted_step.h"
#include "src/plan/state_choice.h"
#include "um/error.h"

namespace spillway {

using prefetch::Profile;

std::vector<Profile> profiles_of(const Workload& workload, const TimedSteps& timed) {
  const std::vector<RepeatedStep>& steps = workload.training_steps();
  um::expects(timed.profiles.size() == steps.size(), "a profile for each step");
  std::vector<Profile> profiles;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    profiles.push_back(profile_for(
        steps[i].step.graph, timed.workload.training_steps()[i].step.graph, timed.profiles[i]));
  }
  Profile& last = profiles.back();
  last.exchanges = prefetch::exchange_times(steps.back().step.graph, timed.interconnect, last.link);
  return profiles;
}

std::optional<um::Nanoseconds> planned_time(const Workload& near, const TimedSteps& timed,
                                            const SizeModel& size_model, um::Bytes budget,
                                            const PlanRequest& request) {
  const StateChoice state{near, size_model, request};
  try {
    const StateChoice::Outcome outcome =
        state.plan(profiles_of(state.within(budget), timed), budget, request);
    return predicted_step(*outcome.workload, outcome.profiles, outcome.plans, request.memory);
  } catch (const um::Error&) {  // such as BudgetTooSmall
    return std::nullopt;
  }
}

}  // namespace spillway
