#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/planner.h"

namespace spillway::prefetch::testing {

/// The shortest makespan of any schedule that executes a sequence of runs, as it is, and offloads
/// whole blocks between two of their uses; nothing when none fits. For graphs with a handful of
/// blocks that are idle between uses.
///
/// Searches over all decisions: which idle intervals of blocks are spent far, every order of
/// offloads and of prefetches, and how both interleave with the runs. Whatever starts, starts when
/// something else ends: any other schedule can be shifted left to one of these. A block may be
/// copied out when the last run that uses it before its idle interval has ended, or already when it
/// is written where the link copies while tasks read; once it has been far and not been written
/// since, its memory is freed in no time. Its memory is free when both the copy and that run have
/// ended, and taken when a prefetch starts; on a link that is not duplex one move is under way at a
/// time. (Only a block that is copied early for a later idle interval and leaves before it is not
/// looked at.) Of two states alike in what has been done and what is under way, the one that is
/// never earlier is dropped; the state that could end the step soonest goes on first.
class ExactSolver {
 public:
  /// Every task once, in order, with its first algorithm.
  explicit ExactSolver(const Problem& problem)
      : ExactSolver{problem, runs_in_order(problem.graph)} {}

  ExactSolver(const Problem& problem, const std::vector<TaskRun>& runs)
      : link_{problem.profile.link} {
    const BlockSizes block_sizes{problem.graph, problem.page};
    const std::vector<Life> lives = find_lives(problem.graph, runs);
    pool_ = signed_size(block_sizes.pool(problem.budget));
    for (const TaskRun& run : runs) times_.push_back(problem.profile(run).count());
    for (const um::Bytes size : demand(problem.graph, block_sizes, runs, lives)) {
      during_.push_back(signed_size(size));
    }
    before_.assign(runs.size() + 1, 0);
    for (const Life& life : lives) {
      for (Position p = life.begin() + 1; p <= life.last(); ++p) {
        before_[p] += signed_size(block_sizes.size(life.data));
      }
      add_idle_intervals(life, block_sizes.size(life.data));
    }
  }

  /// Requires: called once. Looks no further than `limit`.
  std::optional<um::Nanoseconds> solve(um::Nanoseconds limit = um::Nanoseconds{kNever}) {
    push(State{.blocks = std::vector<Where>(blocks_.size(), kNear)});
    while (!open_.empty()) {
      const State state = open_.top();
      open_.pop();
      if (state.end >= limit.count()) return std::nullopt;
      if (state.run == times_.size()) return um::Nanoseconds{state.end};
      start_run(state);
      for (std::size_t i = 0; i < blocks_.size(); ++i) {
        start_offload(state, i);
        start_prefetch(state, i);
      }
      wait(state);
    }
    return std::nullopt;
  }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 4;
  enum Where : std::uint8_t { kNear, kLeaving, kCopied, kFar, kComing, kBack };
  enum Resource : std::uint8_t { kCompute, kOffload, kPrefetch };
  // A block between two uses with a run in between.
  struct Block {
    std::int64_t size;
    Position available;  // may be copied out when this run has ended
    Position last;
    Position next;
    std::int64_t out;  // ns
    std::int64_t in;
    std::size_t
        first;  // of the idle intervals of the same content; this one is among those that follow
  };
  struct State {
    std::size_t run = 0;  // the next to start
    std::array<bool, 3> is_busy{};
    std::array<std::int64_t, 3> free_at{};  // by resource; now where it is not busy
    std::int64_t now = 0;
    std::int64_t end = 0;  // of the step, at the earliest
    std::vector<Where> blocks;
  };
  struct LaterFirst {
    bool operator()(const State& a, const State& b) const {
      return a.end != b.end ? a.end > b.end : a.run < b.run;
    }
  };
  using Times = std::array<std::int64_t, 4>;

  static std::int64_t signed_size(um::Bytes size) {
    return static_cast<std::int64_t>(size.count());
  }

  void add_idle_intervals(const Life& life, um::Bytes size) {
    if (size == um::Bytes{} || life.outlives_step()) return;
    Position written = life.begin();
    std::size_t first = blocks_.size();
    for (std::size_t a = 0; a + 1 < life.accesses.size(); ++a) {
      const Position last = life.accesses[a].position;
      const Position next = life.accesses[a + 1].position;
      if (life.accesses[a].writes) {
        written = last;
        first = blocks_.size();
      }
      if (next == last + 1) continue;
      blocks_.push_back({.size = signed_size(size),
                         .available = link_.copies_while_read ? written : last,
                         .last = last,
                         .next = next,
                         .out = (link_.latency + size / link_.offload).count(),
                         .in = (link_.latency + size / link_.prefetch).count(),
                         .first = first});
    }
  }

  [[nodiscard]] std::int64_t away(const State& state) const {
    std::int64_t size = 0;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (state.blocks[i] == kFar) size += blocks_[i].size;
    }
    return size;
  }
  [[nodiscard]] std::int64_t in_use(const State& state) const {
    return (state.is_busy[kCompute] ? during_[state.run - 1] : before_[state.run]) - away(state);
  }
  [[nodiscard]] std::size_t runs_ended(const State& state) const {
    return state.run - (state.is_busy[kCompute] ? 1 : 0);
  }
  [[nodiscard]] bool link_is_free(const State& state, Resource direction) const {
    const Resource other = direction == kOffload ? kPrefetch : kOffload;
    return !state.is_busy[direction] && (link_.is_duplex || !state.is_busy[other]);
  }

  // True when an earlier visit was alike and at no time later.
  bool is_dominated(const State& state) {
    std::vector<int> key(state.blocks.begin(), state.blocks.end());
    key.push_back(static_cast<int>(state.run));
    key.push_back(state.is_busy[kCompute] ? 1 : 0);
    const Times times{state.now, state.free_at[0], state.free_at[1], state.free_at[2]};
    std::vector<Times>& seen = seen_[key];
    const auto is_no_later = [](const Times& a, const Times& b) {
      return a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2] && a[3] <= b[3];
    };
    for (const Times& other : seen) {
      if (is_no_later(other, times)) return true;
    }
    std::erase_if(seen, [&](const Times& other) { return is_no_later(times, other); });
    seen.push_back(times);
    return false;
  }

  // The runs that are left follow one another, and so do the moves that are.
  [[nodiscard]] std::int64_t earliest_end(const State& state) const {
    std::int64_t computed = state.free_at[kCompute];
    for (std::size_t p = state.run; p < times_.size(); ++p) computed += times_[p];
    std::int64_t moved = state.free_at[kPrefetch];
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const bool is_to_come = state.blocks[i] != kNear && state.blocks[i] < kComing;
      if (is_to_come) moved += blocks_[i].in;
    }
    return std::max(computed, moved);
  }

  void push(State state) {
    if (is_dominated(state)) return;
    state.end = earliest_end(state);
    open_.push(std::move(state));
  }

  void start_run(const State& state) {
    if (state.is_busy[kCompute] || during_[state.run] - away(state) > pool_) return;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const bool is_whole = state.blocks[i] == kNear || state.blocks[i] == kBack;
      if (blocks_[i].next == state.run && !is_whole) return;
    }
    State next = state;
    occupy(next, kCompute, times_[next.run++]);
    push(std::move(next));
  }

  void start_offload(const State& state, std::size_t i) {
    const Block& block = blocks_[i];
    if (state.blocks[i] != kNear || state.run > block.next) return;
    if (is_left_for_later(state, i) || is_away(state, i)) return;
    State next = state;
    if (has_far_copy(state, i)) {
      if (runs_ended(state) <= block.last) return;
      next.blocks[i] = kFar;
      return push(std::move(next));
    }
    if (runs_ended(state) <= block.available || !link_is_free(state, kOffload)) return;
    next.blocks[i] = kLeaving;
    occupy(next, kOffload, block.out);
    push(std::move(next));
  }

  // True when a later idle interval of the same content is copied out already.
  [[nodiscard]] bool is_left_for_later(const State& state, std::size_t i) const {
    for (std::size_t j = i + 1; j < blocks_.size() && blocks_[j].first == blocks_[i].first; ++j) {
      if (state.blocks[j] != kNear) return true;
    }
    return false;
  }
  // True when an earlier idle interval of the same content is not over.
  [[nodiscard]] bool is_away(const State& state, std::size_t i) const {
    for (std::size_t j = blocks_[i].first; j < i; ++j) {
      if (state.blocks[j] != kNear && state.blocks[j] != kBack) return true;
    }
    return false;
  }
  [[nodiscard]] bool has_far_copy(const State& state, std::size_t i) const {
    for (std::size_t j = blocks_[i].first; j < i; ++j) {
      if (state.blocks[j] == kBack) return true;
    }
    return false;
  }

  void start_prefetch(const State& state, std::size_t i) {
    if (state.blocks[i] != kFar || !link_is_free(state, kPrefetch)) return;
    if (in_use(state) + blocks_[i].size > pool_) return;
    State next = state;
    next.blocks[i] = kComing;
    occupy(next, kPrefetch, blocks_[i].in);
    push(std::move(next));
  }

  static void occupy(State& state, Resource resource, std::int64_t time) {
    state.is_busy[resource] = true;
    state.free_at[resource] = state.now + time;
  }

  // Goes on to the next end of anything.
  void wait(const State& state) {
    std::int64_t now = kNever;
    for (std::size_t r = 0; r < 3; ++r) {
      if (state.is_busy[r]) now = std::min(now, state.free_at[r]);
    }
    if (now == kNever) return;
    State next = state;
    next.now = now;
    for (std::size_t r = 0; r < 3; ++r) {
      if (next.is_busy[r] && next.free_at[r] == now) next.is_busy[r] = false;
      if (!next.is_busy[r]) next.free_at[r] = now;
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      Where& where = next.blocks[i];
      if (where == kLeaving && !next.is_busy[kOffload]) where = kCopied;
      if (where == kCopied && runs_ended(next) > blocks_[i].last) where = kFar;
      if (where == kComing && !next.is_busy[kPrefetch]) where = kBack;
    }
    push(std::move(next));
  }

  LinkProfile link_;
  std::int64_t pool_ = 0;
  std::vector<std::int64_t> times_;   // by run
  std::vector<std::int64_t> during_;  // by run: bytes near when nothing is away
  std::vector<std::int64_t> before_;  // likewise, between the run and the one before
  std::vector<Block> blocks_;
  std::map<std::vector<int>, std::vector<Times>> seen_;
  std::priority_queue<State, std::vector<State>, LaterFirst> open_;
};

}  // namespace spillway::prefetch::testing
