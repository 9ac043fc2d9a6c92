#include "prefetch/runtime/given_step.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Lane;

// Number of finished pieces of work by lane.
using Counts = std::array<std::uint32_t, um::kLanes>;

constexpr std::size_t index_of(Lane lane) { return static_cast<std::size_t>(lane); }

Counts counts_of(const Progress& progress) {
  Counts counts{};
  counts[index_of(Lane::kCompute)] = progress.runs;
  counts[index_of(Lane::kOut)] = progress.offloads;
  counts[index_of(Lane::kIn)] = progress.prefetches;
  return counts;
}

void join(Counts& counts, const Counts& other) {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = std::max(counts[i], other[i]);
}

class ProgramMaker {
 public:
  ProgramMaker(const Plan& plan, std::uint32_t first) : plan_{plan}, first_{first} {
    lengths_[index_of(Lane::kCompute)] = static_cast<std::uint32_t>(plan.runs.size());
    lengths_[index_of(Lane::kOut)] = static_cast<std::uint32_t>(plan.offloads.size());
    lengths_[index_of(Lane::kIn)] = static_cast<std::uint32_t>(plan.prefetches.size());
    for (const Move& offload : plan.offloads) {
      frees_after_.push_back(std::max(frees_after_.back(), offload.frees_after()));
    }
    given_[index_of(Lane::kCompute)] = first;
    for (Counts& known : known_) known[index_of(Lane::kCompute)] = first;
  }

  StepProgram make() {
    // Moves first, each as early as possible; a verified plan never deadlocks.
    while (given_ != lengths_) {
      const bool moved = give_next(Lane::kOut) || give_next(Lane::kIn) || give_next(Lane::kCompute);
      um::expects(moved, "a plan in which something can always start");
    }
    return std::move(program_);
  }

 private:
  [[nodiscard]] const Progress& after(Lane lane, std::uint32_t index) const {
    switch (lane) {
      case Lane::kOut:
        return plan_.offloads[index].after;
      case Lane::kIn:
        return plan_.prefetches[index].after;
      case Lane::kCompute:
        break;
    }
    return plan_.runs[index].after;
  }

  // Returns what must have ended before the piece starts, besides earlier work of its own lane.
  [[nodiscard]] Counts needed(Lane lane, std::uint32_t index) const {
    Counts counts = counts_of(after(lane, index));
    if (lane != Lane::kOut) {
      std::uint32_t& runs = counts[index_of(Lane::kCompute)];
      runs = std::max(runs, frees_after_[counts[index_of(Lane::kOut)]]);
    }
    counts[index_of(lane)] = 0;
    return counts;
  }

  [[nodiscard]] bool is_given(const Counts& needed) const {
    return std::ranges::equal(needed, given_, std::ranges::less_equal{});
  }

  bool give_next(Lane lane) {
    const std::uint32_t index = given_[index_of(lane)];
    if (index == lengths_[index_of(lane)]) return false;
    const Counts needed = this->needed(lane, index);
    if (!is_given(needed)) return false;
    Counts& known = known_[index_of(lane)];
    StepProgram::Command command{.lane = lane, .index = index, .waits = waits(needed, known)};
    known[index_of(lane)] = ++given_[index_of(lane)];
    known_after_[index_of(lane)].push_back(known);
    places_[index_of(lane)].push_back(program_.commands.size());
    program_.commands.push_back(std::move(command));
    return true;
  }

  // Returns the waits for `needed` that a lane which knows of `known` still has to make.
  std::vector<StepProgram::Wait> waits(const Counts& needed, Counts& known) {
    std::vector<StepProgram::Wait> made;
    for (const Lane other : {Lane::kOut, Lane::kIn, Lane::kCompute}) {
      const std::uint32_t count = needed[index_of(other)];
      if (known[index_of(other)] >= count) continue;
      join(known, at(known_after_, other, count));
      program_.commands[at(places_, other, count)].is_awaited = true;
      made.push_back({.lane = other, .count = count});
    }
    return made;
  }

  // Returns the entry of the last of a lane's first `count` pieces of work.
  template <class T>
  [[nodiscard]] const T& at(const std::array<std::vector<T>, um::kLanes>& of_lanes, Lane lane,
                            std::uint32_t count) const {
    return of_lanes[index_of(lane)][count - 1 - (lane == Lane::kCompute ? first_ : 0)];
  }

  const Plan& plan_;
  std::uint32_t first_;
  // By number of offloads: how many runs have ended when the room of all these offloads is free.
  std::vector<std::uint32_t> frees_after_{0};
  Counts lengths_{};
  Counts given_{};
  std::array<Counts, um::kLanes> known_{};                   // by lane
  std::array<std::vector<Counts>, um::kLanes> known_after_;  // by lane and index
  std::array<std::vector<std::size_t>, um::kLanes> places_;  // in the program, by lane and index
  StepProgram program_;
};

// Charges near memory from when submission of the step begins until it is complete.
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

StepProgram make_program(const Plan& plan, std::uint32_t first) {
  return ProgramMaker{plan, first}.make();
}

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
  // By lane and count: the mark behind the lane's first `count` pieces of work.
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
