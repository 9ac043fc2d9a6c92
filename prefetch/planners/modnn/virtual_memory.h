#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/task_graph.h"
#include "um/arena.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A stretch of near memory: a block, or free.
struct Segment {
  um::Bytes offset;
  um::Bytes size;
  std::optional<DataId> block;  ///< nullopt when it is free
};

/// Near memory in moDNN's virtual execution (section III-B): an arena's linked list of segments,
/// each free or holding a block. Touches no memory.
class SegmentList {
 public:
  /// `size` and all allocations are multiples of `alignment`.
  SegmentList(um::Bytes size, um::Bytes alignment) : arena_{size, alignment} {}

  /// Gives `block` the smallest free segment of at least `size`. Returns false when there is none.
  [[nodiscard]] bool allocate(DataId block, um::Bytes size);
  /// Requires: contains(block).
  void free(DataId block);
  [[nodiscard]] bool contains(DataId block) const { return offsets_.contains(key(block)); }

  /// Returns all segments in address order, without gaps; free segments are never adjacent.
  /// Complexity: O(segments).
  [[nodiscard]] std::vector<Segment> segments() const;

 private:
  static std::uint32_t key(DataId block) { return static_cast<std::uint32_t>(block); }

  um::Arena arena_;
  std::map<std::uint64_t, Segment> occupied_;             // by offset
  std::unordered_map<std::uint32_t, um::Bytes> offsets_;  // by block
};

/// The cost of moving a block out of near memory.
struct Departure {
  um::Nanoseconds ready{0};  ///< earliest start of its transfer
  um::Nanoseconds duration{
      0};             ///< of its transfer; zero where a far copy is valid: it is just freed
  Position next = 0;  ///< the run that uses it next
};

/// Returns the departure of a block; nullopt when it must stay.
using FindDeparture = std::function<std::optional<Departure>(DataId)>;

/// Adjacent blocks that leave together to make room for an allocation.
struct OffloadScheme {
  um::Bytes offset;  ///< of the room
  um::Bytes size;    ///< of the room
  std::vector<DataId> blocks;
  um::Nanoseconds delay{0};     ///< until the last of them has left
  um::Nanoseconds transfer{0};  ///< of all of them
  /// The first run that uses one of them; the largest Position if there is none.
  Position next = std::numeric_limits<Position>::max();
};

/// The times of moDNN's two streams.
struct StreamClocks {
  um::Nanoseconds now{0};        ///< Strm_C: when the next task could start
  um::Nanoseconds link_free{0};  ///< Strm_D: when all scheduled transfers have ended
};

/// moDNN's search for an offloading scheme (section IV-B1, Fig. 4). Each segment in turn is the
/// first, and the following ones are added until there is room for `size`; a block that must stay
/// ends the attempt. The scheme with the lowest delay wins. The paper does not specify ties, which
/// are frequent since most schemes cause no delay. Here the scheme with the latest next use wins,
/// then the shortest transfer, then the lowest address.
///
/// Complexity: O(segments * segments of a scheme).
[[nodiscard]] std::optional<OffloadScheme> find_scheme(std::span<const Segment> segments,
                                                       um::Bytes size, const StreamClocks& clocks,
                                                       const FindDeparture& departure);

/// Moves of whole blocks in the order in which a planner's virtual execution issued them; the
/// conditions of a plan follow from it. The execution never exceeded a pool; the plan keeps the
/// same pool under any timing.
class MoveLog {
 public:
  /// Offloads `block` to make room for later entries: its copy may start when run `from` has ended.
  /// Its last use is run `last`, not before `from`.
  void offload(DataId block, um::Bytes size, Position from, Position last, bool is_clean);
  /// Loads `block` for run `next`, after all runs before `at` have ended. Returns its entry.
  std::size_t load(DataId block, um::Bytes size, Position at, Position next);
  /// Cancels a load; its block stays away.
  void cancel(std::size_t load) { entries_[load].is_cancelled = true; }

  /// Adds the moves to a plan without moves, and gives `plan.runs` their conditions:
  /// - an offload starts when run `from` has ended;
  /// - a prefetch waits for the runs before `at` and for all offloads that were issued before it;
  /// - a run waits for the prefetches of its operands, and for enough offloads to fit beside any
  ///   set of prefetches that may have started.
  ///
  /// Requires: `plan.runs` is filled, and `demand` is its demand(). The execution kept within
  /// `pool` after each issued load, and during each run with all moves issued before the next run.
  /// Complexity: O(runs + moves + pairs of a run and a prefetch in flight).
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

/// Returns the bytes of movable state, which moDNN does not move: weights always reside in near
/// memory (section II).
[[nodiscard]] um::Bytes resident_state(const TaskGraph& graph, const BlockSizes& block_sizes);

/// Near memory, far copies and the two streams of moDNN's virtual execution (section IV), while the
/// runs are executed in sequence in estimated time. Offloads and loads are issued to one transfer
/// engine, Strm_D, in order, and recorded in a MoveLog.
///
/// For each position in turn, call begin(), then functions that make room and load, then end().
class VirtualMemory {
 public:
  /// Executes every task of `problem`, which must outlive it, once and in order.
  /// Requires: each run fits in the pool beside resident_state().
  explicit VirtualMemory(const Problem& problem);

  /// Returns the current time: when the run at the current position could start.
  [[nodiscard]] um::Nanoseconds now() const { return clocks_.now; }
  /// Returns when Strm_D has ended everything issued so far.
  [[nodiscard]] um::Nanoseconds link_free() const { return clocks_.link_free; }
  void delay_until(um::Nanoseconds time) { clocks_.now = std::max(clocks_.now, time); }
  [[nodiscard]] um::Nanoseconds transfer_time(um::Bytes size) const;

  /// Gives every operand of run p a place, offloading others (or everything) if necessary
  /// (Algorithm 1, lines 3-8), and loads its inputs; now() is then the time of their arrival.
  void begin(Position p);
  /// Ends the run after `duration`, and frees its workspace and dead blocks (lines 28-31).
  void end(Position p, um::Nanoseconds duration);

  /// Returns which blocks must leave to make room for the running task's workspace; nullopt when no
  /// scheme is found. The scheme is empty if there is room.
  [[nodiscard]] std::optional<OffloadScheme> scheme_for_workspace(um::Bytes size) const;
  /// Allocates the workspace, after defragmentation if no scheme is found; now() is then the time
  /// at which it is free.
  void take_workspace(um::Bytes size);

  /// Returns the first run after `p` that reads a far block.
  [[nodiscard]] std::optional<Position> next_missing(Position p) const;
  /// Returns the far blocks that run s reads.
  [[nodiscard]] std::vector<DataId> missing(Position s) const;
  /// Issues the load of a block that run s reads. Returns false when there is neither room nor a
  /// scheme.
  [[nodiscard]] bool prefetch(DataId block, Position s);

  /// Predicts whether run i finds room for its operands without defragmentation when `more` are
  /// near as well. The paper does not say how. Here blocks are assumed to have left, or to be able
  /// to leave, unless they are operands of run i or protected by criterion (b). Blocks made in the
  /// meantime are assumed not to be in the way, and the largest operand is placed first.
  [[nodiscard]] bool can_be_allocated(Position i, std::span<const DataId> more) const;

  /// Returns the transfer time of those `blocks` that would find free room now, but not beside a
  /// workspace of `workspace` bytes for which `scheme` makes room.
  [[nodiscard]] um::Nanoseconds displaced(std::span<const DataId> blocks, um::Bytes workspace,
                                          const OffloadScheme& scheme) const;

  /// Returns the next run that uses `block`, which is live.
  [[nodiscard]] Position next_use(DataId block) const { return at(block).next_use(); }
  [[nodiscard]] um::Bytes size(DataId block) const { return block_sizes_.size(block); }
  [[nodiscard]] const MoveLog& log() const { return log_; }

 private:
  struct Block {
    const Life* life = nullptr;
    std::size_t next = 0;  // index into the life's accesses
    bool is_near = false;
    bool is_far_valid = false;
    bool is_fresh = false;            // not used since it was generated or loaded: criterion (b)
    std::optional<std::size_t> load;  // of the log, while loaded but not used
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
  std::vector<std::vector<DataId>> operands_;  // by position: movable ones
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
