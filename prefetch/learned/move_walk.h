#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "prefetch/learned/believed_pages.h"
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

}  // namespace spillway::prefetch
