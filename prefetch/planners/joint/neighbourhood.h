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

/// Blocks, or idle intervals, that are alike, by their indices in a DecisionSpace: as many networks
/// repeat their layers, what holds for one of them holds for all. Each group has at least two.
using Group = std::vector<std::uint32_t>;

/// Prices or times of one class differ by at most an eighth. Exact: the same on every machine.
[[nodiscard]] int magnitude(double value);

/// Droppable blocks of the same size that are made amid tasks which take about the same time, one
/// by one. In order of their first block.
[[nodiscard]] std::vector<Group> alike_blocks(const DecisionSpace& space, const Problem& problem);

/// Idle intervals of blocks of the same size that begin and end amid tasks which take about the
/// same time, one by one. In order of their first interval.
[[nodiscard]] std::vector<Group> alike_intervals(const DecisionSpace& space,
                                                 const Problem& problem);

/// Changes that are tried together.
using CandidateEdit = std::vector<Change>;

/// An order of the droppable blocks; what is next to each other is changed together.
enum class BlockOrder {
  kByCost,     ///< recompute time per byte
  kByPosition  ///< in the network
};

/// Which blocks to drop first. Blocks of about the same cost per byte, as repeated layers have, are
/// taken evenly spread over the network.
struct Selection {
  std::size_t count = 0;  ///< so many, those that are cheapest per byte
  /// A block's cost is taken to grow by so much of itself from the first block of the network to
  /// the last. Late blocks have less time to be moved before memory is short.
  double tilt = 0;
  /// Of blocks that cost about the same, one in so many is kept, from which the others can be made
  /// again a few at a time; 0: none.
  std::size_t keep_every = 0;
};

/// Ways on from some decisions, for a local search over a DecisionSpace.
class Neighbourhood {
 public:
  Neighbourhood(const DecisionSpace& space, const Problem& problem);

  /// Drops what `selection` says and keeps all other blocks.
  [[nodiscard]] CandidateEdit drop_cheapest(const Selection& selection) const;

  /// For each range of `length` blocks in `order`: drop all of it, drop it for each use, keep all
  /// of it; without edits that change nothing.
  [[nodiscard]] std::vector<CandidateEdit> ranges(const Decisions& from, BlockOrder order,
                                                  std::size_t length) const;

  /// For each group of alike_blocks() the same, whatever else lies between them.
  [[nodiscard]] std::vector<CandidateEdit> alike(const Decisions& from) const;

  /// For each range of `length` tasks with several algorithms: the first one for all, the fastest
  /// for all.
  [[nodiscard]] std::vector<CandidateEdit> algorithm_ranges(const Decisions& from,
                                                            std::size_t length) const;

  /// What would help where `plan`, made from `from`, waits longest: dropping the cheapest of the
  /// blocks that keep the link busy, and not needing the workspace that is in the way. `prices`: by
  /// droppable block, what its recomputation costs or would cost per byte.
  [[nodiscard]] std::vector<CandidateEdit> against_stalls(const Decisions& from, const Plan& plan,
                                                          const Timeline& timeline,
                                                          std::span<const double> prices) const;

  /// Keeps what costs most per byte to make again, one by one and together, and exchanges it for
  /// the cheapest of what `plan` moves.
  [[nodiscard]] std::vector<CandidateEdit> against_cost(const Decisions& from, const Plan& plan,
                                                        std::span<const double> prices) const;

  /// `count` exchanges drawn at random that by `prices` make the recomputation cheaper: the most
  /// expensive dropped blocks of one stretch of the network are kept, the cheapest kept ones of
  /// another are dropped instead. Fewer where few are found.
  [[nodiscard]] std::vector<CandidateEdit> exchanges(const Decisions& from,
                                                     std::span<const double> prices,
                                                     std::size_t count,
                                                     std::mt19937_64& generator) const;

  /// One to `max` changes at random.
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
  std::vector<std::uint32_t> by_position_;  // likewise
  std::vector<std::uint32_t> index_of_;     // by DataId: index of the droppable block, or kNone
};

/// A time in which the compute queue waits for moves.
struct Stall {
  Position before = 0;  ///< the run that waits
  um::Nanoseconds length{0};
  /// Blocks on the way meanwhile, and those that the link was busy with up to then without a
  /// pause; those with most bytes first.
  std::vector<DataId> moving;
};

/// The stalls of `plan` when it runs as `timeline` says, the longest first, at most `count`.
/// Complexity: O(runs log runs + count * moves).
[[nodiscard]] std::vector<Stall> longest_stalls(const Plan& plan, const Timeline& timeline,
                                                std::size_t count);

}  // namespace spillway::prefetch
