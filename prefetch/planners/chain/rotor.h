#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "prefetch/planner.h"
#include "prefetch/planners/chain/chain.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// One operation of a checkpointing sequence (RR-9302, table 1).
struct RotorOperation {
  enum class Kind {
    kForwardAll,      ///< F_all: keeps its input and everything that its backward reads
    kForwardKeeping,  ///< F_ck: keeps its input, drops the rest
    kForwardPassing,  ///< F_null: keeps only its output
    kBackward
  };
  Kind kind;
  std::size_t stage;
  friend bool operator==(const RotorOperation&, const RotorOperation&) = default;
};

/// Optimal checkpointing on chains: the fastest sequence of forward and backward operations within
/// a memory, without moves. Considers only persistent sequences: a tensor once kept stays until its
/// backward has run. See Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova, RR-9302, as the rotor
/// tool implements it. With C(s, t, m) the least time from x_s and y_{t+1} near to y_s, in m bytes
/// beside x_s:
///   C(s, s, m) = f_s + b_s
///   C(s, t, m) = min( f_s + C(s+1, t, m - kept_s) + b_s,                            s by F_all
///                     min_{s < r <= t} f_s + ... + f_{r-1}                          s by F_ck
///                                      + C(r, t, m - |x_r|) + C(s, r-1, m) )
/// where F_all of s needs  |y_{t+1}| + kept_s + forward_extra, B_s needs
/// |y_{s+1}| + |y_s| + kept_s + backward_extra, and F_ck and F_null need
/// |y_{t+1}| + |x_j| + |x_{j+1}| + passing_extra for each j (x_s counted outside m).
///
/// x_0 counts: a memory of M leaves M - |x_0| for C(0, L, .). The loss is a stage of its own at the
/// end; in a pure chain it takes neither time nor bytes. With these conventions, the published
/// operation counts for homogeneous chains result, with the loss (forward and backward) as one
/// operation.
///
/// A stage that is not recomputable runs forward once, by F_all.
class RotorTable {
 public:
  /// For memories of up to `slots` units; every size is rounded up to units. Copies what it needs
  /// from `chain`.
  /// Complexity: O(stages^3 * slots) time, O(stages^2 * slots) memory.
  RotorTable(const Chain& chain, um::Bytes unit, std::size_t slots);

  /// Returns the least time within a memory of `slots` units; nullopt when it does not suffice.
  [[nodiscard]] std::optional<um::Nanoseconds> makespan(std::size_t slots) const;

  /// Returns the sequence with the time makespan(slots). Requires: makespan(slots) has a value.
  [[nodiscard]] std::vector<RotorOperation> sequence(std::size_t slots) const;

 private:
  struct Stage {
    std::int64_t forward_time;
    std::int64_t backward_time;
    std::size_t input;
    std::size_t output;
    std::size_t kept;
    std::size_t gradient;
    std::size_t input_gradient;
    std::size_t forward_extra;
    std::size_t passing_extra;
    std::size_t backward_extra;
    bool is_recomputable;
  };
  struct Cell {
    std::int64_t time = kNever;
    std::uint32_t split = 0;  // r; s itself for F_all
  };
  static constexpr std::int64_t kNever = INT64_MAX / 4;

  [[nodiscard]] std::size_t row(std::size_t s, std::size_t t) const {
    return (s * stages_.size() + t) * slots_;
  }
  void fill(std::size_t s, std::size_t t);
  void try_saving(std::size_t s, std::size_t t);
  void try_splits(std::size_t s, std::size_t t);
  void append(std::size_t s, std::size_t t, std::size_t m, std::vector<RotorOperation>& to) const;

  std::vector<Stage> stages_;
  std::size_t slots_ = 1;    // memories 0 ... slots_ - 1 beside x_0
  std::vector<Cell> cells_;  // by s, t and memory
};

/// Optimal checkpointing of the linearised step (see linearise() and RotorTable), without moves.
///
/// At most 100 stages, and memory in 256 units of the step's whole demand: the paper leaves both to
/// the implementation. The table's memory models the step's. The planner searches the largest table
/// memory with a sequence of runs that really fits the budget: by bisection, or if that fails by
/// trying all. Algorithms are the first ones; then each task gets the fastest with a workspace that
/// fits beside the live blocks at all its runs. Nothing is recomputed if the step fits, or the
/// problem forbids it.
[[nodiscard]] std::variant<Plan, Infeasible> plan_rotor(const Problem& problem);

}  // namespace spillway::prefetch
