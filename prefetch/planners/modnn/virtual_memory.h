#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/planners/modnn/offload_scheme.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Moves of whole blocks in the order in which a planner's virtual execution issued them, from
/// which the conditions of a plan follow. In that execution memory never exceeded a pool; the plan
/// keeps the same pool under any timing.
class MoveLog {
 public:
  /// `block` leaves to make room for whatever is issued later: its copy may start when run `from`
  /// has ended, and its last use is run `last`, not before `from`.
  void offload(DataId block, um::Bytes size, Position from, Position last, bool is_clean);
  /// `block` comes back for run `next`, when all runs before `at` have ended. Returns its entry.
  std::size_t load(DataId block, um::Bytes size, Position at, Position next);
  /// Takes a load back; its block stays away.
  void cancel(std::size_t load) { entries_[load].is_cancelled = true; }

  /// Adds the moves to a plan without moves, and gives `plan.runs` their conditions:
  /// - an offload starts when run `from` has ended;
  /// - a prefetch waits for the runs before `at` and for all offloads that were issued before it;
  /// - a run waits for the prefetches of its operands, and for as many offloads as it needs so that
  ///   it fits whichever of the prefetches that may have started by then have started.
  ///
  /// Requires: `plan.runs` is filled, `demand` is its demand(), and after each issued load, and
  /// during each run with all moves issued before the next run, the execution kept within `pool`.
  /// Complexity: O(runs + moves + pairs of a run and a prefetch under way).
  void add_to(Plan& plan, std::span<const um::Bytes> demand, um::Bytes pool) const;

 private:
  struct Entry {
    Move move;
    bool is_load = false;
    bool is_cancelled = false;
    Position next = 0;  // of a load
  };
  std::vector<Entry> entries_;
};

/// Bytes of state that a plan may move. moDNN does not: weights always reside in near memory
/// (section II).
[[nodiscard]] um::Bytes resident_state(const TaskGraph& graph, const BlockSizes& block_sizes);

/// Near memory, far copies and the two streams of moDNN's virtual execution (section IV): what is
/// where while the runs are executed one after the other in estimated time. Offloads and loads are
/// issued to one transfer engine, Strm_D, in order, and noted in a MoveLog.
///
/// For each position in turn: begin(), whatever makes room and loads, end().
class VirtualMemory {
 public:
  /// Every task of `problem`, which must outlive it, once and in order.
  /// Requires: each run fits in the pool beside resident_state().
  explicit VirtualMemory(const Problem& problem);

  /// The current time: when the run at the current position could start.
  [[nodiscard]] um::Nanoseconds now() const { return clocks_.now; }
  /// When Strm_D has ended everything issued so far.
  [[nodiscard]] um::Nanoseconds link_free() const { return clocks_.link_free; }
  void delay_until(um::Nanoseconds time) { clocks_.now = std::max(clocks_.now, time); }
  [[nodiscard]] um::Nanoseconds transfer_time(um::Bytes size) const;

  /// Gives every operand of run p a place, offloading others, or everything, where there is none
  /// (Algorithm 1, lines 3-8), and loads its inputs; now() is then when they are there.
  void begin(Position p);
  /// The run ends after `duration`, and its workspace and what nobody needs any more are freed
  /// (lines 28-31).
  void end(Position p, um::Nanoseconds duration);

  /// What has to leave so that the running task gets a workspace; nothing when no scheme is found.
  /// An empty scheme where there is room.
  [[nodiscard]] std::optional<OffloadScheme> scheme_for_workspace(um::Bytes size) const;
  /// Takes the workspace, after defragmentation where no scheme is found; now() is then when it
  /// is free.
  void take_workspace(um::Bytes size);

  /// The first run after `p` that reads a block that is far.
  [[nodiscard]] std::optional<Position> next_missing(Position p) const;
  /// The far blocks that run s reads.
  [[nodiscard]] std::vector<DataId> missing(Position s) const;
  /// Issues the load of a block that run s reads. False when there is no room and no scheme.
  [[nodiscard]] bool prefetch(DataId block, Position s);

  /// Predicts whether run i will find room for its operands without defragmentation when `more`
  /// are near as well. The paper omits how; here: by then, whatever is neither an operand of run i
  /// nor protected by criterion (b) will have left or can leave, what is made in the meantime lies
  /// where it does not matter, and the largest operand is placed first.
  [[nodiscard]] bool can_be_allocated(Position i, std::span<const DataId> more) const;

  /// Which of `blocks` would find free room now, but not beside a workspace of `workspace` that
  /// `scheme` makes room for: how long their transfers take.
  [[nodiscard]] um::Nanoseconds displaced(std::span<const DataId> blocks, um::Bytes workspace,
                                          const OffloadScheme& scheme) const;

  /// The run that uses `block`, which is live, next.
  [[nodiscard]] Position next_use(DataId block) const { return at(block).next_use(); }
  [[nodiscard]] um::Bytes size(DataId block) const { return block_sizes_.size(block); }
  [[nodiscard]] const MoveLog& log() const { return log_; }

 private:
  struct Block {
    const Life* life = nullptr;
    std::size_t next = 0;  // index into the life's accesses
    bool is_near = false;
    bool is_far_valid = false;
    bool is_fresh = false;            // not used since it was generated or fetched: criterion (b)
    std::optional<std::size_t> load;  // of the log: it was fetched and not used yet
    um::Nanoseconds arrives{0};       // when that load ends

    [[nodiscard]] Position next_use() const { return life->accesses[next].position; }
    [[nodiscard]] Position last_use() const { return life->accesses[next - 1].position; }
    [[nodiscard]] Position last_write() const;
  };
  [[nodiscard]] Block& at(DataId id) { return blocks_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Block& at(DataId id) const { return blocks_[static_cast<std::size_t>(id)]; }

  bool allocate(DataId id, um::Bytes size, Position last);
  [[nodiscard]] std::optional<OffloadScheme> find(um::Bytes size, Position last) const;
  [[nodiscard]] std::optional<Departure> departure(DataId id, Position last) const;
  void offload(DataId id);
  void load(DataId id);
  void place_all(um::Bytes workspace);
  void defragment(um::Bytes workspace);
  void take_back(DataId id);
  [[nodiscard]] Position leaves_from(const Block& block) const;
  [[nodiscard]] bool stays_until(DataId id, Position i) const;

  BlockSizes block_sizes_;
  LinkProfile link_;
  std::vector<std::vector<DataId>> operands_;  // by position: those that move
  std::vector<Life> lives_;
  std::size_t next_life_ = 0;
  std::vector<Block> blocks_;
  std::set<std::pair<Position, DataId>> away_;  // by next use
  std::vector<um::Nanoseconds> finish_;         // by position
  SegmentList segments_;
  StreamClocks clocks_;
  Position position_ = 0;
  MoveLog log_;
};

}  // namespace spillway::prefetch
