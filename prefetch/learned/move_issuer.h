#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "prefetch/learned/believed_pages.h"
#include "prefetch/learned/learn.h"
#include "prefetch/learned/recording.h"
#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"
#include "um/memory.h"

namespace spillway::prefetch {

/// A plan's moves and when they are too late. Fixed once the plan is.
struct MoveTerms {
  static constexpr Position kNever = ~0U;

  MoveTerms(const TaskGraph& graph, const Plan& plan);

  std::vector<Move> offloads;
  std::vector<Move> prefetches;
  /// By move: the run that uses its block next; kNever when none in this step does.
  std::vector<Position> offload_uses;
  std::vector<Position> prefetch_uses;
  um::Bytes page;
  um::Bytes pool;  ///< near memory for movable pages
};

/// Walks a plan's moves beside one iteration whose runs do not wait for them: as PlanWalker's
/// queues, but a move that comes too late is dropped, and a prefetch is held back while near memory
/// has no room for it, since what it counts on need not have happened.
class MoveWalk {
 public:
  /// One move to issue.
  struct Step {
    um::MemoryTier to = um::MemoryTier::kNear;
    std::uint32_t index = 0;
    PageRange pages;
  };

  explicit MoveWalk(const MoveTerms& terms);

  /// So many runs have ended; the next one begins.
  void advance(Position runs) { progress_.runs = runs; }
  /// The next move whose condition holds, which is noted in `near` as issued; drops what is too
  /// late or moves nothing. `used`: blocks that were used after the walk's last run (for a walk
  /// whose iteration has ended; else none), by index.
  std::optional<Step> next(NearPages& near, const std::vector<bool>& used);
  /// A move has ended.
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

/// A move that the caller is to issue now, and whose end it reports by its ticket.
struct PrefetchCommand {
  std::uint64_t ticket = 0;  ///< no two commands have the same
  um::MemoryTier to = um::MemoryTier::kNear;
  BlockName name;           ///< in the replay plan
  std::uint64_t block = 0;  ///< its owner's id (Replayer)
  um::Bytes offset;         ///< into the block, a multiple of the page
  um::Bytes size;           ///< up to a page's or the block's end
};

/// Issues the moves of a replay plan, cycle after cycle.
///
/// It keeps account of the pages that are near, and never brings more near than the plan's pool
/// holds. It does not see what the memory evicts; it takes it that what page faults bring near
/// beyond the pool has sent away what was used longest ago (as the host device does, and GPUs'
/// drivers nearly). Otherwise it would hold back all that comes once the program is ahead of it.
/// What the last run of a cycle lets go is moved when the next cycle has begun, before that one's
/// moves.
class MoveIssuer {
 public:
  /// Tickets count on from `first_ticket`.
  MoveIssuer(const ReplayPlan& replay_plan, std::uint64_t first_ticket);
  MoveIssuer(const MoveIssuer&) = delete;  // its walks refer to its terms
  MoveIssuer& operator=(const MoveIssuer&) = delete;
  ~MoveIssuer() = default;

  /// A block that has content as the first cycle begins: it may be anywhere; it counts as used just
  /// now.
  void adopt(BlockName block, um::Bytes size) { static_cast<void>(touch(block, size)); }

  /// A cycle begins. Where the one before was not followed to its end, what should be far is
  /// sent there first.
  void begin(bool was_followed);
  /// Task `task` of the replay plan begins, and those before it have ended.
  void reach(Position task) { current_.advance(task); }
  /// All commands that may be issued by now. Complexity: O(commands and their pages).
  std::vector<PrefetchCommand> issue();
  /// No more commands until begin().
  void stop() { is_stopped_ = true; }

  /// The program uses a block. True unless it knows the block and not all of it was near.
  bool touch(BlockName block, um::Bytes size);
  void release(BlockName block);
  /// A command has been carried out. Tickets of another issuer are ignored.
  void complete(std::uint64_t ticket);

  [[nodiscard]] um::Bytes near() const { return near_.near(); }
  [[nodiscard]] std::uint64_t next_ticket() const { return next_ticket_; }

 private:
  struct Block {
    BlockName name;
    um::Bytes size;
  };
  struct Flight {
    std::uint64_t walk = 0;  // 0: settles
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
  std::optional<MoveWalk> tail_;  // of the cycle before
  std::vector<bool> used_;        // by block: since the cycle began
  std::vector<bool> none_;        // as long
  std::vector<PrefetchCommand> settling_;
  std::map<std::uint64_t, Flight> flights_;  // by ticket
  std::uint64_t next_ticket_;
  bool is_stopped_ = true;
};

}  // namespace spillway::prefetch
