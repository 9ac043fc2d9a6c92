#include "src/plan/predicted_step.h"

#include <cstddef>
#include <cstdint>

#include "prefetch/simulate/simulate.h"
#include "src/plan/state_passing.h"
#include "um/error.h"

namespace spillway {

um::Nanoseconds predicted_step(const Workload& workload,
                               std::span<const prefetch::Profile> profiles, const Plans& plans,
                               MemoryMode memory) {
  um::expects(profiles.size() == workload.training_steps().size(), "a profile for each step");
  um::Nanoseconds sum = state_passing_time(workload, profiles, plans, memory);
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const RepeatedStep& part = workload.training_steps()[i];
    const prefetch::Plan& plan = plans.training[i];
    const um::Nanoseconds once =
        memory == MemoryMode::kResident && plan.exchanges.empty()
            ? prefetch::compute_time(profiles[i], plan.runs)
            : prefetch::simulate(part.step.graph, plan, profiles[i]).makespan();
    sum += static_cast<std::int64_t>(part.times) * once;
  }
  return sum;
}

}  // namespace spillway
