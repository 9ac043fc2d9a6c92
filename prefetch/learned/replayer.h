#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "prefetch/learned/learn.h"
#include "prefetch/learned/move_issuer.h"
#include "prefetch/learned/recording.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Names live blocks: a block allocated since the first iteration mark, by its birth while it is
/// younger than kOld iterations; any other block by its owner's id.
class LiveBlocks {
 public:
  /// Age in iterations from which a block counts as permanent.
  static constexpr std::uint64_t kOld = 4;

  struct Block {
    BlockName name;
    um::Bytes size;
  };

  void begin_iteration() {
    ++iteration_;
    next_ordinal_ = 0;
  }
  [[nodiscard]] std::uint64_t iteration() const { return iteration_; }

  /// Complexity of each function: O(log blocks).
  void allocate(std::uint64_t block, um::Bytes size);
  void free(std::uint64_t block) { blocks_.erase(block); }
  /// Notes a use of a block, which reveals blocks from before the first mark.
  void see(std::uint64_t block, um::Bytes size);
  [[nodiscard]] BlockName name(std::uint64_t block) const;

  /// Returns all known blocks by the owner's id, with their births.
  [[nodiscard]] const std::map<std::uint64_t, Block>& all() const { return blocks_; }

 private:
  std::uint64_t iteration_ = 0;
  std::uint64_t next_ordinal_ = 0;
  std::map<std::uint64_t, Block> blocks_;
};

/// Maps live blocks to blocks of a replay plan. Blocks with the same ordinal in the same iteration
/// of a cycle succeed one another under one name.
class ReplayNames {
 public:
  explicit ReplayNames(std::uint64_t cycle) : cycle_{cycle} {}

  struct Claim {
    BlockName name;              ///< in the replay plan, if it has that block
    bool has_displaced = false;  ///< another live block had the name before
  };
  /// Assigns a name to the block, until its release or until another block claims the name.
  /// Complexity of each function: O(log blocks).
  Claim claim(std::uint64_t block, const BlockName& name);
  /// Removes the block. Returns its name.
  std::optional<BlockName> release(std::uint64_t block);
  [[nodiscard]] std::optional<std::uint64_t> owner(const BlockName& name) const;

 private:
  std::uint64_t cycle_;
  std::map<std::uint64_t, BlockName> names_;   // by block
  std::map<BlockName, std::uint64_t> owners_;  // the reverse
};

struct ReplayerOptions {
  std::size_t max_events = 20'000;  ///< of an iteration; a longer one is not learned
  std::size_t max_misses = 16;      ///< of an iteration; with more it is abandoned
  std::size_t look_ahead = 8;       ///< touches that may be skipped at once
  std::size_t longest_cycle = 4;    ///< in iterations; at least 1
  std::uint64_t relearn_after = 4;  ///< consecutive abandoned iterations
  std::uint64_t retry_after = 32;   ///< iterations before a new attempt after a failure
};

/// Counters of a replayer. Each ended iteration counts once: iterations == recorded + followed +
/// abandoned + idle. Each touch counts once: touches == hits + misses + unguided.
struct ReplayerCounters {
  std::uint64_t iterations = 0;
  std::uint64_t recorded = 0;
  std::uint64_t followed = 0;
  std::uint64_t abandoned = 0;
  std::uint64_t idle = 0;  ///< waited for a replay plan, or paused
  std::uint64_t replay_plans = 0;
  std::uint64_t touches = 0;
  std::uint64_t hits = 0;      ///< expected touches
  std::uint64_t misses = 0;    ///< unexpected touches while an iteration was followed
  std::uint64_t unguided = 0;  ///< touches while none was followed
  std::uint64_t late = 0;      ///< touches of blocks that were not all near (estimated)
  std::uint64_t prefetches = 0;
  std::uint64_t offloads = 0;
};

/// A declared use of a block, identified by an id that is unique among live blocks.
struct BlockUse {
  std::uint64_t block = 0;
  um::Bytes size;  ///< of the whole block
  um::Access access = um::Access::kReadWrite;
  um::Nanoseconds at{0};  ///< Touch::at
};

/// Follows a program that repeats its iterations, or a cycle of a few. Records them until they have
/// repeated a cycle twice, lets the caller learn it, and from then on returns at each touch the
/// moves to issue. A stencil that swaps two arrays has a cycle of two, as has a loop that allocates
/// its new state before it frees the old one.
///
/// Never blocks and never changes a result: commands are hints. An unexpected touch is a miss;
/// after ReplayerOptions::max_misses the iteration is abandoned: no more commands until a cycle
/// begins. After ReplayerOptions::relearn_after consecutive abandoned iterations it learns anew.
///
/// Similar to runtime/PlanWalker with the plan's conditions. There runs wait for their moves; here
/// they do not, so the plan's proof does not apply, and MoveIssuer checks the room for each
/// prefetch.
///
/// Thread safety: none; use the caller's lock. Has neither clock nor thread.
class Replayer {
 public:
  explicit Replayer(const ReplayerOptions& options = {}) : options_{options} {}

  /// Ends the iteration and begins the next; events before the first mark are not an iteration.
  [[nodiscard]] std::vector<PrefetchCommand> mark(um::Nanoseconds at);
  /// Notes an allocation. Optional before the first mark.
  void allocate(std::uint64_t block, um::Bytes size);
  [[nodiscard]] std::vector<PrefetchCommand> free(std::uint64_t block);
  /// Notes that the program is about to use a block.
  [[nodiscard]] std::vector<PrefetchCommand> touch(const BlockUse& use);
  /// Notes that a command's move has ended, or was refused. Requires: called once per command.
  [[nodiscard]] std::vector<PrefetchCommand> complete(std::uint64_t ticket);

  /// True when a cycle was recorded: the caller runs learn(recorded(), …), here or on a copy
  /// elsewhere, and passes the result to load(). Until then it neither records nor moves.
  [[nodiscard]] bool is_ready() const { return state_ == State::kReady; }
  [[nodiscard]] const RecordedCycles& recorded() const { return recorded_; }
  /// Requires: is_ready(). Following begins at the next mark at which a cycle begins.
  void load(std::variant<ReplayPlan, NotLearned> result);

  [[nodiscard]] const ReplayerCounters& counters() const { return counters_; }
  /// Returns its current activity, or why it is inactive, for the user: one clause.
  [[nodiscard]] std::string description() const;
  /// Returns the movable bytes that count as near while a replay plan is followed.
  [[nodiscard]] um::Bytes near() const { return issuer_ ? issuer_->near() : um::Bytes{}; }

 private:
  enum class State { kIdle, kRecording, kReady, kLoaded, kReplaying, kAbandoned, kPaused };

  void end_recording(um::Nanoseconds at);
  void begin_replay();
  void end_replayed();
  void forget_replay_plan();
  void begin_recording();
  void pause(std::string reason);
  /// Returns the program's place in the plan's cycle: 0 at its beginning.
  [[nodiscard]] std::size_t phase() const;
  BlockName claim(std::uint64_t block);
  void match(const Touch& touch);
  [[nodiscard]] std::optional<std::size_t> find(const Touch& touch) const;
  std::vector<PrefetchCommand> issue();

  ReplayerOptions options_;
  ReplayerCounters counters_;
  State state_ = State::kIdle;
  LiveBlocks live_;

  std::vector<Recording> recordings_;  // the latest
  RecordedCycles recorded_;            // valid when ready
  std::optional<Recording> current_;
  std::uint64_t pause_left_ = 0;
  std::string refusal_;

  std::optional<ReplayPlan> replay_plan_;
  std::optional<ReplayNames> names_;
  std::optional<MoveIssuer> issuer_;
  std::uint64_t next_ticket_ = 1;
  std::size_t expected_ = 0;  // index into the plan's touches
  std::size_t misses_ = 0;    // of this iteration
  std::uint64_t abandoned_in_succession_ = 0;
};

}  // namespace spillway::prefetch
