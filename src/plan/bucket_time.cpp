#include "src/plan/bucket_time.h"

#include "src/plan/predicted_step.h"
#include "src/plan/profile_for.h"
#include "src/plan/state_choice.h"
#include "um/error.h"

namespace spillway {

using prefetch::Profile;

std::vector<Profile> profiles_of(const Workload& workload, const TimedSteps& timed) {
  std::vector<Profile> profiles =
      profiles_for(workload, timed.workload, {timed.profiles.begin(), timed.profiles.end()});
  Profile& last = profiles.back();
  last.exchanges =
      prefetch::exchange_times(workload.training().graph, timed.interconnect, last.link);
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
