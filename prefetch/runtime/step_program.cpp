#include "prefetch/runtime/step_program.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Lane;

// How many pieces of each lane's work have ended, by lane.
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
    // Moves first, each as early as can be; a verified plan never gets stuck.
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

  // What must have ended before it starts. Its own lane is in order in any case.
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

  // Those of `needed` that a lane that knows of `known` does not know yet.
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

  // Of the last one of a lane's first `count` pieces of work.
  template <class T>
  [[nodiscard]] const T& at(const std::array<std::vector<T>, um::kLanes>& of_lanes, Lane lane,
                            std::uint32_t count) const {
    return of_lanes[index_of(lane)][count - 1 - (lane == Lane::kCompute ? first_ : 0)];
  }

  const Plan& plan_;
  std::uint32_t first_;
  // How many runs have ended when the room of the first so many offloads is free.
  std::vector<std::uint32_t> frees_after_{0};
  Counts lengths_{};
  Counts given_{};
  std::array<Counts, um::kLanes> known_{};                   // by lane
  std::array<std::vector<Counts>, um::kLanes> known_after_;  // by lane and index
  std::array<std::vector<std::size_t>, um::kLanes> places_;  // in the program, likewise
  StepProgram program_;
};

}  // namespace

StepProgram make_program(const Plan& plan, std::uint32_t first) {
  return ProgramMaker{plan, first}.make();
}

}  // namespace spillway::prefetch
