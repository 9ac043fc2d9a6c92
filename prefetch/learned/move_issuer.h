#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/learned/learn.h"
#include "prefetch/learned/recording.h"
#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"
#include "um/memory.h"

namespace spillway::prefetch {

/// Neighbouring pages [begin, end) of a block.
struct PageRange {
  DataId data{};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Learned prefetch's model of each movable page: far, near, or moving. A page counts as near from
/// the issue of its prefetch until its offload has ended, or until shrink(): the memory's own
/// evictions are estimated.
class NearPages {
 public:
  NearPages(const TaskGraph& graph, const BlockSizes& block_sizes);

  /// Returns the bytes that count as near.
  [[nodiscard]] um::Bytes near() const { return near_ * page_; }
  /// False for blocks that are not allocated, freed or never touched; these are not moved.
  [[nodiscard]] bool has_content(DataId data) const { return at(data).has_content; }
  /// A number that changes when the block is released, or used while it moves: ends of moves from
  /// an earlier life are ignored.
  [[nodiscard]] std::uint32_t life(DataId data) const { return at(data).life; }

  /// Notes that the program uses the block: far pages come by page faults. Returns false if the
  /// block had content that was not all near.
  bool touch(DataId data);
  /// Estimates evictions after page faults brought more than `max` near: the least recently used or
  /// arrived blocks have left, except `kept`. Complexity: O(blocks) per evicted block.
  void shrink(um::Bytes max, DataId kept);
  /// Notes that the block was freed.
  void release(DataId data);

  /// True when pages of the range are leaving.
  [[nodiscard]] bool are_leaving(const PageRange& range) const;
  /// Returns the bytes that a prefetch of the range would add to near().
  [[nodiscard]] um::Bytes far(const PageRange& range) const;
  /// Notes that a prefetch of the range is issued. Returns the part from its first to its last far
  /// page; nullopt when all are near.
  std::optional<PageRange> bring(const PageRange& range);
  /// Notes that an offload of the range is issued. Returns the part from its first to its last near
  /// or arriving page; nullopt when there is none.
  std::optional<PageRange> send(const PageRange& range);
  /// Notes that a prefetch or an offload of the range has ended.
  void arrive(const PageRange& range);
  void leave(const PageRange& range);

 private:
  enum class State : std::uint8_t { kFar, kComing, kNear, kLeaving };
  struct Block {
    std::vector<State> pages;
    bool has_content = false;
    std::uint32_t life = 0;
    std::uint64_t last_use = 0;  // touch or arrival
  };

  [[nodiscard]] const Block& at(DataId data) const {
    return blocks_[static_cast<std::size_t>(data)];
  }
  Block& at(DataId data) { return blocks_[static_cast<std::size_t>(data)]; }
  template <typename Moves>
  std::optional<PageRange> move(const PageRange& range, State to, const Moves& moves);

  um::Bytes page_;
  std::uint64_t near_ = 0;  // pages
  std::uint64_t uses_ = 0;
  std::vector<Block> blocks_;
};

/// A plan's moves and their deadlines. Constant after construction.
struct MoveTerms {
  static constexpr Position kNever = ~0U;

  MoveTerms(const TaskGraph& graph, const Plan& plan);

  std::vector<Move> offloads;
  std::vector<Move> prefetches;
  /// By move: the next run that uses its block; kNever when none in this step does.
  std::vector<Position> offload_uses;
  std::vector<Position> prefetch_uses;
  um::Bytes page;
  um::Bytes pool;  ///< near memory for movable pages
};

/// Walks a plan's moves beside one iteration with runs that do not wait for them. Works like
/// PlanWalker's queues, but drops a move that is too late. Delays a prefetch while near memory has
/// no room, since moves that it counts on may not have happened.
class MoveWalk {
 public:
  /// One move to issue.
  struct Step {
    um::MemoryTier to = um::MemoryTier::kNear;
    std::uint32_t index = 0;
    PageRange pages;
  };

  explicit MoveWalk(const MoveTerms& terms);

  /// Notes that `runs` runs have ended, and the next one begins.
  void advance(Position runs) { progress_.runs = runs; }
  /// Returns the next move that may start, and notes it in `near` as issued; drops moves that are
  /// too late or move nothing. `used`: by index, blocks used after the walk's last run (if the
  /// iteration has ended; otherwise empty).
  std::optional<Step> next(NearPages& near, const std::vector<bool>& used);
  /// Notes that a move has ended.
  void end(um::MemoryTier to, std::uint32_t index);
  /// True when every move was issued or dropped.
  [[nodiscard]] bool is_through() const;

 private:
  struct Queue {
    std::uint32_t issued = 0;
    std::vector<bool> has_ended;
  };

  std::optional<Step> next_offload(NearPages& near, const std::vector<bool>& used);
  std::optional<Step> next_prefetch(NearPages& near, const std::vector<bool>& used);
  [[nodiscard]] PageRange pages(const Move& move) const;

  const MoveTerms* terms_;
  Progress progress_;
  Queue offloads_;
  Queue prefetches_;
};

/// A move for the caller to issue now; its end is reported by ticket.
struct PrefetchCommand {
  std::uint64_t ticket = 0;  ///< unique among commands
  um::MemoryTier to = um::MemoryTier::kNear;
  BlockName name;           ///< in the replay plan
  std::uint64_t block = 0;  ///< its owner's id (Replayer)
  um::Bytes offset;         ///< into the block, a multiple of the page
  um::Bytes size;           ///< up to a page's or the block's end
};

/// Issues the moves of a replay plan, cycle after cycle.
///
/// Counts near pages, and never brings more near than the plan's pool holds. It does not see
/// evictions. It assumes that page faults beyond the pool have evicted the least recently used
/// blocks (as the host device does, and nearly as GPU drivers do); otherwise it would hold back all
/// prefetches once the program is ahead of it. Offloads after the last run of a cycle are issued
/// when the next cycle has begun, before that cycle's moves.
class MoveIssuer {
 public:
  /// Tickets are consecutive from `first_ticket`.
  MoveIssuer(const ReplayPlan& replay_plan, std::uint64_t first_ticket);
  MoveIssuer(const MoveIssuer&) = delete;  // walks refer to terms_
  MoveIssuer& operator=(const MoveIssuer&) = delete;
  ~MoveIssuer() = default;

  /// Adds a block that has content when the first cycle begins. It may be near or far; it counts as
  /// just used.
  void adopt(BlockName block, um::Bytes size) { static_cast<void>(touch(block, size)); }

  /// Begins a cycle. If the previous one was not followed to its end, first sends blocks far that
  /// should be.
  void begin(bool was_followed);
  /// Notes that task `task` of the replay plan begins, and the tasks before it have ended.
  void reach(Position task) { current_.advance(task); }
  /// Returns all commands that may be issued now. Complexity: O(commands and their pages).
  std::vector<PrefetchCommand> issue();
  /// Issues no more commands until begin().
  void stop() { is_stopped_ = true; }

  /// Notes that the program uses a block. Returns false if a known block was not all near.
  bool touch(BlockName block, um::Bytes size);
  void release(BlockName block);
  /// Notes that a command has ended. Ignores tickets of another issuer.
  void complete(std::uint64_t ticket);

  [[nodiscard]] um::Bytes near() const { return near_.near(); }
  [[nodiscard]] std::uint64_t next_ticket() const { return next_ticket_; }

 private:
  struct Block {
    BlockName name;
    um::Bytes size;
  };
  struct Flight {
    std::uint64_t walk = 0;  // 0: a settling command
    std::uint32_t index = 0;
    um::MemoryTier to = um::MemoryTier::kNear;
    PageRange pages;
    std::uint32_t life = 0;
  };

  void find_far_between_steps(const ReplayPlan& replay_plan);
  void settle();
  void take(MoveWalk& walk, std::uint64_t id, const std::vector<bool>& used,
            std::vector<PrefetchCommand>& commands);
  PrefetchCommand command(const Flight& flight);

  std::map<BlockName, DataId> ids_;
  std::vector<Block> blocks_;  // by DataId
  MoveTerms terms_;
  NearPages near_;
  std::vector<PageRange> far_between_steps_;
  Position runs_;

  MoveWalk current_;
  std::uint64_t current_id_ = 1;
  std::optional<MoveWalk> tail_;  // of the previous cycle
  std::vector<bool> used_;        // by block: since the cycle began
  std::vector<bool> none_;        // all false, as long as used_
  std::vector<PrefetchCommand> settling_;
  std::map<std::uint64_t, Flight> flights_;  // by ticket
  std::uint64_t next_ticket_;
  bool is_stopped_ = true;
};

}  // namespace spillway::prefetch
