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

/// Names the blocks that live: what was allocated since the first iteration mark by its birth, for
/// as long as it is younger than kOld iterations; all else by its owner's id.
class LiveBlocks {
 public:
  /// Iterations after which a block counts as one that was always there.
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

  /// Complexity of each: O(log blocks).
  void allocate(std::uint64_t block, um::Bytes size);
  void free(std::uint64_t block) { blocks_.erase(block); }
  /// The block is in use: one that was there before the first mark shows itself so.
  void see(std::uint64_t block, um::Bytes size);
  [[nodiscard]] BlockName name(std::uint64_t block) const;

  /// All that are known, by the owner's id; their births are not forgotten.
  [[nodiscard]] const std::map<std::uint64_t, Block>& all() const { return blocks_; }

 private:
  std::uint64_t iteration_ = 0;
  std::uint64_t next_ordinal_ = 0;
  std::map<std::uint64_t, Block> blocks_;
};

/// Which live block is which block of a replay plan: of a cycle of so many iterations, those
/// allocated in the same iteration of it by the same ordinal follow one another under one name.
class ReplayNames {
 public:
  explicit ReplayNames(std::uint64_t cycle) : cycle_{cycle} {}

  struct Claim {
    BlockName name;              ///< in the replay plan, if it has that block
    bool has_displaced = false;  ///< another live block had the name until now
  };
  /// What the block of this name is called from now on: as long as it lives, or until another one
  /// claims its name. Complexity of each: O(log blocks).
  Claim claim(std::uint64_t block, const BlockName& name);
  /// The block is no more. Returns what it was called.
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
  std::size_t look_ahead = 8;       ///< touches that may be left out at a time
  std::size_t longest_cycle = 4;    ///< iterations after which it all repeats; at least 1
  std::uint64_t relearn_after = 4;  ///< iterations abandoned one after another
  std::uint64_t retry_after = 32;   ///< iterations before it tries again what it could not learn
};

/// What a replayer has seen. Each iteration that has ended counts once: iterations == recorded +
/// followed + abandoned + idle. Each touch counts once: touches == hits + misses + unguided.
struct ReplayerCounters {
  std::uint64_t iterations = 0;
  std::uint64_t recorded = 0;
  std::uint64_t followed = 0;
  std::uint64_t abandoned = 0;
  std::uint64_t idle = 0;  ///< waited for a replay plan, or paused
  std::uint64_t replay_plans = 0;
  std::uint64_t touches = 0;
  std::uint64_t hits = 0;      ///< touches that were the expected ones
  std::uint64_t misses = 0;    ///< others while an iteration was followed
  std::uint64_t unguided = 0;  ///< while none was
  std::uint64_t late = 0;      ///< touches of blocks that were not all near (as it believes)
  std::uint64_t prefetches = 0;
  std::uint64_t offloads = 0;
};

/// One declared use of a block, which its owner calls by an id that no other live block has.
struct BlockUse {
  std::uint64_t block = 0;
  um::Bytes size;  ///< of the whole block
  um::Access access = um::Access::kReadWrite;
  um::Nanoseconds at{0};  ///< Touch::at
};

/// Follows a program that repeats its iterations, or a cycle of a few: records them until they have
/// gone through a cycle twice, has it learned, and from then on says at each touch which blocks to
/// move. A stencil that swaps two arrays has a cycle of two; so has a loop that allocates its new
/// state before it frees the old one.
///
/// It never waits and never changes a result: commands are hints. A touch that is not the expected
/// one is a miss; after ReplayerOptions::max_misses the iteration is abandoned: no more commands
/// until a cycle begins. When so many are abandoned in succession it learns anew.
///
/// The same idea as runtime/PlanWalker, whose runs wait for their moves; here nobody waits, so
/// that the proof of the plan does not hold by itself, and every prefetch is admitted by account
/// (MoveIssuer). The conditions are shared: they are the plan's.
///
/// Thread safety: none, no clock, no thread: the caller's lock.
class Replayer {
 public:
  explicit Replayer(const ReplayerOptions& options = {}) : options_{options} {}

  /// The iteration ended, and the next begins; what came before the first mark is no iteration.
  [[nodiscard]] std::vector<PrefetchCommand> mark(um::Nanoseconds at);
  /// The program allocated a block. What it allocated before the first mark need not be told.
  void allocate(std::uint64_t block, um::Bytes size);
  [[nodiscard]] std::vector<PrefetchCommand> free(std::uint64_t block);
  /// The program is about to use a block.
  [[nodiscard]] std::vector<PrefetchCommand> touch(const BlockUse& use);
  /// The move of a command has ended, or was refused. Requires: once for each command.
  [[nodiscard]] std::vector<PrefetchCommand> complete(std::uint64_t ticket);

  /// True when a cycle was recorded: the caller runs learn(recorded(), …) here or elsewhere, on a
  /// copy of it, and hands the result to load(). Until then nothing is recorded or moved.
  [[nodiscard]] bool is_ready() const { return state_ == State::kReady; }
  [[nodiscard]] const RecordedCycles& recorded() const { return recorded_; }
  /// Requires: is_ready(). Following begins at the next mark at which the cycle does.
  void load(std::variant<ReplayPlan, NotLearned> result);

  [[nodiscard]] const ReplayerCounters& counters() const { return counters_; }
  /// What it is doing, or why it does nothing, for the user: one clause.
  [[nodiscard]] std::string description() const;
  /// Movable bytes that count as near while a replay plan is followed.
  [[nodiscard]] um::Bytes near() const { return issuer_ ? issuer_->near() : um::Bytes{}; }

 private:
  enum class State { kIdle, kRecording, kReady, kLoaded, kReplaying, kAbandoned, kPaused };

  void end_recording(um::Nanoseconds at);
  void begin_replay();
  void end_replayed();
  void forget_replay_plan();
  void begin_recording();
  void pause(std::string reason);
  /// Where the program is in the plan's cycle: 0 as it begins.
  [[nodiscard]] std::size_t phase() const;
  BlockName claim(std::uint64_t block);
  void match(const Touch& touch);
  [[nodiscard]] std::optional<std::size_t> find(const Touch& touch) const;
  std::vector<PrefetchCommand> issue();

  ReplayerOptions options_;
  ReplayerCounters counters_;
  State state_ = State::kIdle;
  LiveBlocks live_;

  std::vector<Recording> recordings_;  // the last ones
  RecordedCycles recorded_;            // when ready
  std::optional<Recording> current_;
  std::uint64_t pause_left_ = 0;
  std::string refusal_;

  std::optional<ReplayPlan> replay_plan_;
  std::optional<ReplayNames> names_;
  std::optional<MoveIssuer> issuer_;
  std::uint64_t next_ticket_ = 1;
  std::size_t expected_ = 0;       // index into the plan's touches
  std::size_t misses_ = 0;         // of this iteration
  bool is_cycle_replayed_ = true;  // so far
  std::uint64_t abandoned_in_succession_ = 0;
};

}  // namespace spillway::prefetch
