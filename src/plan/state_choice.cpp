#include "src/plan/state_choice.h"

#include <string>

#include "src/program/combinations.h"
#include "um/error.h"

namespace spillway {
namespace {

using um::Bytes;

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

UpdateRule update_rule(const PlanRequest& request, bool may_be_far, const Features& features,
                       const SizeModel& size_model) {
  if (request.update == UpdateRule::kNear) return UpdateRule::kNear;
  const bool is_wanted = request.update == UpdateRule::kFar;
  if (is_wanted) expect_combinable(features.with(StatePlace::kUpdatedFar));
  if (is_wanted && request.state == StateRule::kNear) {
    throw um::Error{
        "updates on the far side are of state that is far; leave out --state near, or --update "
        "far"};
  }
  if (is_wanted && request.memory == MemoryMode::kResident) {
    throw um::Error{
        "--memory resident has no far memory; leave out --update far, or take --memory managed or "
        "copy"};
  }
  if (is_wanted && !request.planner->updates_far()) {
    throw um::Error{"planner " + std::string{request.planner->name()} +
                    " plans no updates on the far side; leave out --update far, or take joint, "
                    "fractional or capacity"};
  }
  const FarUpdateSupport support = size_model.far_update_support();
  if (is_wanted && support == FarUpdateSupport::kNone) {
    throw um::Error{"this device does not update on the far side; leave out --update far"};
  }
  const bool is_possible = may_be_far && request.planner->updates_far() &&
                           (is_wanted || support == FarUpdateSupport::kAutomatic);
  return is_possible ? request.update : UpdateRule::kNear;
}

}  // namespace

StateChoice::StateChoice(const Workload& near, const SizeModel& size_model,
                         const PlanRequest& request)
    : near_{near},
      far_{near.with(size_model, near.features().with(StatePlace::kMovable))},
      far_updates_{size_model.far_update_support() != FarUpdateSupport::kNone
                       ? near.with(size_model, near.features().with(StatePlace::kUpdatedFar))
                       : nullptr},
      rule_{request.update == UpdateRule::kFar ? StateRule::kFar : request.state},
      may_be_far_{may_be_far(request)},
      update_{update_rule(request, may_be_far_, near.features(), size_model)} {
  if (far_updates_ != nullptr || update_ == UpdateRule::kNear) return;
  if (update_ == UpdateRule::kFar) refuse_far_updates();
  update_ = UpdateRule::kNear;
}

prefetch::NearNeed StateChoice::need() const {
  prefetch::NearNeed need = near_.need();
  const auto take = [&](const Workload& workload) {
    need.smallest = workload.need().smallest;
    need.largest_task = workload.need().largest_task;
  };
  if (update_ == UpdateRule::kFar) {
    take(*far_updates_);
    return need;
  }
  if (may_be_far_ && (rule_ == StateRule::kFar || far_->need().smallest < need.smallest)) {
    take(*far_);
  }
  if (update_ == UpdateRule::kAuto && far_updates_->need().smallest < need.smallest) {
    take(*far_updates_);
  }
  return need;
}

const Workload& StateChoice::within(Bytes budget) const {
  if (!may_be_far_) return near_;
  const bool has_room_for_updates = update_ != UpdateRule::kAuto ||
                                    budget >= far_->need().smallest ||
                                    far_updates_->need().smallest >= far_->need().smallest;
  if (update_ == UpdateRule::kFar || !has_room_for_updates) return *far_updates_;
  return rule_ == StateRule::kFar || budget < near_.need().smallest ? *far_ : near_;
}

const Workload* StateChoice::other(Bytes budget) const {
  return may_be_far_ && &within(budget) == &near_ ? far_.get() : nullptr;
}

const Workload* StateChoice::with_other_updates(const Workload& planned) const {
  return update_ == UpdateRule::kAuto && &planned == far_.get() ? far_updates_.get() : nullptr;
}

}  // namespace spillway
