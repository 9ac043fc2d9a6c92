#include "src/plan/state_choice.h"

#include <string>
#include <utility>
#include <variant>

#include "src/plan/predicted_step.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::Profile;
using um::Bytes;
using um::Nanoseconds;

bool may_be_far(const PlanRequest& request) {
  if (request.state == StateRule::kNear) return false;
  if (request.memory == MemoryMode::kResident) {
    if (request.state == StateRule::kAuto) return false;
    throw um::Error{
        "--memory resident has no far memory; leave out --state far, or take --memory managed or "
        "copy"};
  }
  if (request.planner->moves_state()) return true;
  if (request.state == StateRule::kAuto) return false;
  throw um::Error{"planner " + std::string{request.planner->name()} +
                  " leaves weights and optimizer state near; leave out --state far, or take "
                  "joint, fractional, capacity or on-demand"};
}

Nanoseconds time_of_tasks(const Workload& workload, std::span<const Profile> profiles) {
  Nanoseconds sum{0};
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const RepeatedStep& part = workload.training_steps()[i];
    const auto times = static_cast<std::int64_t>(part.times);
    sum += times * prefetch::compute_time(profiles[i], prefetch::runs_in_order(part.step.graph));
  }
  return sum;
}

using Attempt = std::variant<StateChoice::Outcome, BudgetTooSmall>;

Attempt try_plan(const Workload& workload, std::vector<Profile> profiles, Bytes budget,
                 const PlanRequest& request) {
  try {
    Plans plans = make_plans(workload, profiles, budget, request);
    return StateChoice::Outcome{
        .workload = &workload, .profiles = std::move(profiles), .plans = std::move(plans)};
  } catch (const BudgetTooSmall& refusal) {
    return refusal;
  }
}

std::vector<Profile> profiles_for(const Workload& workload, std::vector<Profile> profiles) {
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    profiles[i] = profile_for(workload.training_steps()[i].step.graph, std::move(profiles[i]));
  }
  return profiles;
}

Nanoseconds predicted(const StateChoice::Outcome& outcome, MemoryMode memory) {
  return predicted_step(*outcome.workload, outcome.profiles, outcome.plans, memory);
}

StateChoice::Outcome outcome_of(Attempt attempt) {
  if (const auto* refusal = std::get_if<BudgetTooSmall>(&attempt)) throw *refusal;
  return std::get<StateChoice::Outcome>(std::move(attempt));
}

}  // namespace

StateChoice::StateChoice(const Workload& near, const SizeModel& size_model,
                         const PlanRequest& request)
    : near_{near},
      far_{near.with_moving_state(size_model)},
      rule_{request.state},
      may_be_far_{may_be_far(request)} {}

prefetch::NearNeed StateChoice::need() const {
  prefetch::NearNeed need = near_.need();
  if (may_be_far_ && (rule_ == StateRule::kFar || far_->need().smallest < need.smallest)) {
    need.smallest = far_->need().smallest;
    need.largest_task = far_->need().largest_task;
  }
  return need;
}

const Workload& StateChoice::within(Bytes budget) const {
  if (!may_be_far_) return near_;
  return rule_ == StateRule::kFar || budget < near_.need().smallest ? *far_ : near_;
}

const Workload* StateChoice::other(Bytes budget) const {
  return may_be_far_ && &within(budget) == &near_ ? far_.get() : nullptr;
}

StateChoice::Outcome StateChoice::plan(std::vector<Profile> profiles, Bytes budget,
                                       const PlanRequest& request) const {
  const Workload& first = within(budget);
  const Nanoseconds tasks = time_of_tasks(first, profiles);
  const Workload* const second = other(budget);
  std::vector<Profile> others;
  if (second != nullptr) others = profiles_for(*second, profiles);
  Attempt near = try_plan(first, std::move(profiles), budget, request);
  const auto* const planned = std::get_if<Outcome>(&near);
  if (second == nullptr) return outcome_of(std::move(near));
  if (planned != nullptr && !may_gain_by_far_state(predicted(*planned, request.memory), tasks)) {
    return outcome_of(std::move(near));
  }
  Attempt far = try_plan(*second, std::move(others), budget, request);
  const auto* const moving = std::get_if<Outcome>(&far);
  if (moving == nullptr) return outcome_of(std::move(near));
  if (planned != nullptr && !gains_by_far_state(predicted(*planned, request.memory),
                                                predicted(*moving, request.memory))) {
    return outcome_of(std::move(near));
  }
  return outcome_of(std::move(far));
}

void expect_whole_batch(const PlanRequest& request) {
  if (request.state != StateRule::kFar) return;
  throw um::Error{
      "state that moves (--state far) goes with whole batches only; leave out --sub-batch"};
}

bool may_gain_by_far_state(Nanoseconds near, Nanoseconds tasks) { return 50 * near > 51 * tasks; }

bool gains_by_far_state(Nanoseconds near, Nanoseconds far) { return 20 * far < 19 * near; }

Profile profile_for(const prefetch::TaskGraph& graph, Profile profile) {
  um::expects(profile.durations.size() == graph.tasks.size(), "a profile of the same tasks");
  profile.graph = prefetch::fingerprint(graph);
  return profile;
}

}  // namespace spillway
