#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/recomputation.h"
#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/planners/joint/decisions.h"
#include "prefetch/simulate/timeline.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Indices in a DecisionSpace of alike blocks or idle intervals. Networks repeat their layers, so a
/// good decision for one is good for all. Each group has at least two.
using Group = std::vector<std::uint32_t>;

/// Returns a size class: prices or times of one class differ by at most an eighth. Exact: the same
/// on every machine.
[[nodiscard]] int magnitude(double value);

/// Returns groups of droppable blocks with the same size, made amid tasks with about equal times,
/// task by task. In order of their first block.
[[nodiscard]] std::vector<Group> alike_blocks(const DecisionSpace& space, const Problem& problem);

/// Returns groups of idle intervals of blocks with the same size that begin and end amid tasks with
/// about equal times, task by task. In order of their first interval.
[[nodiscard]] std::vector<Group> alike_intervals(const DecisionSpace& space,
                                                 const Problem& problem);

/// Changes that are applied together.
using CandidateEdit = std::vector<Change>;

/// An order of the droppable blocks; neighbours are changed together.
enum class BlockOrder {
  kByCost,     ///< recompute time per byte
  kByPosition  ///< in the network
};

/// Which blocks to drop first. Blocks with about the same cost per byte, as in repeated layers, are
/// chosen evenly over the network.
struct Selection {
  std::size_t count = 0;  ///< number of blocks, cheapest per byte first
  /// Relative increase of a block's assumed cost from the first block of the network to the last.
  /// Late blocks have less time to be moved before memory is short.
  double tilt = 0;
  /// Among blocks with about the same cost, one in `keep_every` is kept, from which the others can
  /// be recomputed a few at a time; 0: none.
  std::size_t keep_every = 0;
};

/// The neighbours of given decisions, for a local search over a DecisionSpace.
class Neighbourhood {
 public:
  Neighbourhood(const DecisionSpace& space, const Problem& problem);

  /// Returns the edit that drops the blocks of `selection` and keeps all others.
  [[nodiscard]] CandidateEdit drop_cheapest(const Selection& selection) const;

  /// Returns for each range of `length` blocks in `order`: drop all, drop all for each use, keep
  /// all; without edits that change nothing.
  [[nodiscard]] std::vector<CandidateEdit> ranges(const Decisions& from, BlockOrder order,
                                                  std::size_t length) const;

  /// Returns the same edits as ranges() for each group of alike_blocks().
  [[nodiscard]] std::vector<CandidateEdit> alike(const Decisions& from) const;

  /// Returns for each range of `length` tasks with several algorithms: the first one for all, the
  /// fastest for all.
  [[nodiscard]] std::vector<CandidateEdit> algorithm_ranges(const Decisions& from,
                                                            std::size_t length) const;

  /// Returns edits against the longest stalls of `plan`, made from `from`: drop the cheapest blocks
  /// that keep the link busy, and avoid the workspace that is in the way. `prices`: by droppable
  /// block, the (possible) cost of its recomputation per byte.
  [[nodiscard]] std::vector<CandidateEdit> against_stalls(const Decisions& from, const Plan& plan,
                                                          const Timeline& timeline,
                                                          std::span<const double> prices) const;

  /// Returns edits that keep the blocks with the most expensive recomputation per byte, one by one
  /// and together, and that exchange them for the cheapest blocks that `plan` moves.
  [[nodiscard]] std::vector<CandidateEdit> against_cost(const Decisions& from, const Plan& plan,
                                                        std::span<const double> prices) const;

  /// Returns `count` random exchanges that make recomputation cheaper by `prices`: they keep the
  /// most expensive dropped blocks of one stretch of the network, and drop the cheapest kept blocks
  /// of another. Returns fewer if few are found.
  [[nodiscard]] std::vector<CandidateEdit> exchanges(const Decisions& from,
                                                     std::span<const double> prices,
                                                     std::size_t count,
                                                     std::mt19937_64& generator) const;

  /// Returns one to `max` random changes.
  [[nodiscard]] CandidateEdit random(const Decisions& from, std::size_t max,
                                     std::mt19937_64& generator) const;

 private:
  void add_policies(const Decisions& from, const Group& blocks,
                    std::vector<CandidateEdit>& edits) const;
  [[nodiscard]] CandidateEdit set_policy(const Decisions& from,
                                         const std::vector<std::uint32_t>& blocks,
                                         RetentionPolicy policy) const;
  [[nodiscard]] std::vector<std::uint32_t> droppable_among(const std::vector<DataId>& blocks) const;

  [[nodiscard]] std::vector<std::uint32_t> stretch(std::mt19937_64& generator) const;

  const DecisionSpace& space_;
  std::vector<Group> alike_;
  std::vector<std::uint32_t> by_cost_;      // indices of droppable blocks
  std::vector<std::uint32_t> by_position_;  // indices of droppable blocks
  std::vector<std::uint32_t> index_of_;     // by DataId: index of the droppable block, or kNone
};

/// An interval in which the compute queue waits for moves.
struct Stall {
  Position before = 0;  ///< the run that waits
  um::Nanoseconds length{0};
  /// Blocks in flight meanwhile, and blocks of the link's uninterrupted work before; most bytes
  /// first.
  std::vector<DataId> moving;
};

/// Returns the stalls of `plan` when it runs as `timeline` says, longest first, at most `count`.
/// Complexity: O(runs log runs + count * moves).
[[nodiscard]] std::vector<Stall> longest_stalls(const Plan& plan, const Timeline& timeline,
                                                std::size_t count);

/// Alternative choices of moves, for a local search over a DecisionSpace; see Neighbourhood.
class MoveNeighbourhood {
 public:
  /// `space` must outlive it.
  MoveNeighbourhood(const DecisionSpace& space, const Problem& problem);

  /// Returns every order in which blocks leave, cut and whole, and in which moves begin; resets all
  /// preferences.
  [[nodiscard]] std::vector<CandidateEdit> orders(const Decisions& from) const;

  /// Returns edits that make room for early prefetches: one toggles MoveOrder::in_parts, the others
  /// set every other amount of room that is kept free (MoveDecisions::spare).
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
