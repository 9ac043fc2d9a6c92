#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "prefetch/planner.h"
#include "prefetch/planners/joint/decisions.h"
#include "prefetch/planners/joint/neighbourhood.h"
#include "prefetch/simulate/timeline.h"

namespace spillway::prefetch {

/// Other choices of what moves, for a local search over a DecisionSpace: see Neighbourhood.
class MoveNeighbourhood {
 public:
  /// `space` must outlive it.
  MoveNeighbourhood(const DecisionSpace& space, const Problem& problem);

  /// Every order in which blocks leave, cut and whole, and moves begin; forgets all preferences.
  [[nodiscard]] std::vector<CandidateEdit> orders(const Decisions& from) const;

  /// Blocks leave part by part (MoveOrder::in_parts), or no longer do.
  [[nodiscard]] std::vector<CandidateEdit> parts(const Decisions& from) const;

  /// What makes room for others to come early: parts(), and every other amount of it that is kept
  /// free (MoveDecisions::spare).
  [[nodiscard]] std::vector<CandidateEdit> looking_ahead(const Decisions& from) const;

  /// Every other preference of each interval in which what moves at the longest stalls of `plan` is
  /// idle; of all intervals where they are few.
  [[nodiscard]] std::vector<CandidateEdit> preferences(const Decisions& from, const Plan& plan,
                                                       const Timeline& timeline) const;

  /// For each group of alike_intervals(): every other preference for all of them.
  [[nodiscard]] std::vector<CandidateEdit> alike(const Decisions& from) const;

  /// One to `max` preferences at random, now and then the order; empty where nothing can move.
  [[nodiscard]] CandidateEdit random(const Decisions& from, std::size_t max,
                                     std::mt19937_64& generator) const;

 private:
  [[nodiscard]] std::vector<std::uint32_t> near_stalls(const Plan& plan,
                                                       const Timeline& timeline) const;

  const DecisionSpace& space_;
  bool may_cut_;
  bool is_duplex_;
  std::vector<Group> alike_;
  std::vector<Preference> choices_;
};

}  // namespace spillway::prefetch
