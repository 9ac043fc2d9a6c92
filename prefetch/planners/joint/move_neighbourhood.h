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

/// Alternative choices of moves, for a local search over a DecisionSpace; see Neighbourhood.
class MoveNeighbourhood {
 public:
  /// `space` must outlive it.
  MoveNeighbourhood(const DecisionSpace& space, const Problem& problem);

  /// Returns every order in which blocks leave, cut and whole, and in which moves begin; resets all
  /// preferences.
  [[nodiscard]] std::vector<CandidateEdit> orders(const Decisions& from) const;

  /// Returns the edit that toggles MoveOrder::in_parts.
  [[nodiscard]] std::vector<CandidateEdit> parts(const Decisions& from) const;

  /// Returns edits that make room for early prefetches: parts(), and every other amount of room
  /// that is kept free (MoveDecisions::spare).
  [[nodiscard]] std::vector<CandidateEdit> looking_ahead(const Decisions& from) const;

  /// Returns every other preference for the intervals of blocks that move at the longest stalls of
  /// `plan`; for all intervals if they are few.
  [[nodiscard]] std::vector<CandidateEdit> preferences(const Decisions& from, const Plan& plan,
                                                       const Timeline& timeline) const;

  /// Returns for each group of alike_intervals() every other preference for all of them.
  [[nodiscard]] std::vector<CandidateEdit> alike(const Decisions& from) const;

  /// Returns one to `max` random preferences, sometimes also an order; empty if nothing can move.
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
