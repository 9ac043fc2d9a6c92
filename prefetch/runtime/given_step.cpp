#include "prefetch/runtime/given_step.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace spillway::prefetch {
namespace {

using um::Lane;

// Near memory counts as in use from when the step is given until all of it is.
class PlacesInUse {
 public:
  explicit PlacesInUse(FixedPlaces& places) : places_{places} { places_.begin_step(); }
  PlacesInUse(const PlacesInUse&) = delete;
  PlacesInUse& operator=(const PlacesInUse&) = delete;
  ~PlacesInUse() { places_.end_step(); }

 private:
  FixedPlaces& places_;
};

}  // namespace

GivenStep::GivenStep(const Plan& plan, FixedPlaces& places, um::Lanes& lanes)
    : plan_{plan}, places_{places}, lanes_{lanes}, whole_{make_program(plan)} {}

void GivenStep::run(const Launch& launch) {
  const PlacesInUse in_use{places_};
  marks_.clear();
  lanes_.run([&] { give(whole_, launch, &marks_); });
}

void GivenStep::keep(Position first, const Launch& launch) {
  const StepProgram program = make_program(plan_, first);
  lanes_.keep([&] { give(program, launch, nullptr); });
}

void GivenStep::repeat() {
  const PlacesInUse in_use{places_};
  lanes_.run_kept();
}

void GivenStep::give(const StepProgram& program, const Launch& launch, std::vector<Marks>* marks) {
  // The mark behind the first so many pieces of each lane's work.
  std::array<std::map<std::uint32_t, um::Lanes::Mark>, um::kLanes> ends;
  const auto ends_of = [&](Lane lane) -> auto& { return ends[static_cast<std::size_t>(lane)]; };
  const auto wait = [&](Lane lane, const std::vector<StepProgram::Wait>& waits) {
    for (const auto& each : waits) lanes_.wait(lane, ends_of(each.lane).at(each.count));
  };
  for (const StepProgram::Command& command : program.commands) {
    const Lane lane = command.lane;
    wait(lane, command.waits);
    const um::Lanes::Mark begin = marks != nullptr ? lanes_.mark(lane) : 0;
    switch (lane) {
      case Lane::kCompute:
        launch(command.index);
        break;
      case Lane::kOut:
        copy(lane, places_.offload(command.index));
        break;
      case Lane::kIn:
        copy(lane, places_.prefetch(command.index));
        break;
    }
    if (!command.is_awaited && marks == nullptr) continue;
    const um::Lanes::Mark end = lanes_.mark(lane);
    ends_of(lane)[command.index + 1] = end;
    if (marks != nullptr) marks->push_back({.begin = begin, .end = end});
  }
}

void GivenStep::copy(Lane lane, const FixedPlaces::Copy& copy) {
  if (!copy.from.empty()) lanes_.copy(lane, copy.from, copy.to);
}

Timeline GivenStep::timeline() {
  Timeline timeline{.runs = std::vector<Interval>(plan_.runs.size()),
                    .offloads = std::vector<Interval>(plan_.offloads.size()),
                    .prefetches = std::vector<Interval>(plan_.prefetches.size())};
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    const StepProgram::Command& command = whole_.commands[i];
    std::vector<Interval>& intervals = command.lane == Lane::kCompute ? timeline.runs
                                       : command.lane == Lane::kOut   ? timeline.offloads
                                                                      : timeline.prefetches;
    intervals[command.index] = {.begin = lanes_.time(marks_[i].begin),
                                .end = lanes_.time(marks_[i].end)};
  }
  return timeline;
}

}  // namespace spillway::prefetch
