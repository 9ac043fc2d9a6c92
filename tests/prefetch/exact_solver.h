#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/planner.h"
#include "prefetch/profile.h"

namespace spillway::prefetch::testing {

/// The home of a whole block of offloadable state between steps (StateHome).
enum class ExactHome : std::uint8_t { kNear, kNearWithCopy, kFar };

/// A stretch between two uses of a block (for state, also between a use and an end of the step), in
/// which it may be far.
struct ExactInterval {
  std::int64_t size;
  std::int64_t available;  ///< the run after which it may be copied out; -1: from the start
  std::int64_t last;       ///< the previous run that uses it; -1: the start
  Position next;           ///< the next run that uses it; the number of runs: the end
  std::int64_t out;        ///< ns
  std::int64_t in;
  std::size_t first;  ///< index of the first interval with the same content, which this one follows
  bool starts_far = false;
  bool stays_far = false;
  bool has_first_copy = false;  ///< its content was far before the step
  bool needs_copy = false;      ///< the step must end with a far copy of its content
};

/// Collects the intervals of lives, one by one.
class ExactIntervals {
 public:
  explicit ExactIntervals(const LinkProfile& link) : link_{link} {}

  void add(const Life& life, um::Bytes size, ExactHome home) {
    if (size == um::Bytes{}) return;
    first_ = intervals_.size();
    std::int64_t written = life.outlives_step() ? -1 : std::int64_t{life.begin()};
    std::int64_t last = -1;
    if (life.outlives_step()) {
      append(size, written, last, life.accesses.front().position);
      intervals_.back().starts_far = home == ExactHome::kFar;
    }
    const auto mark = [&] {
      intervals_.back().has_first_copy = home == ExactHome::kNearWithCopy && written < 0;
    };
    if (life.outlives_step()) mark();
    for (std::size_t a = 0; a < life.accesses.size(); ++a) {
      last = life.accesses[a].position;
      if (life.accesses[a].writes) {
        written = last;
        first_ = intervals_.size();
      }
      if (a + 1 == life.accesses.size()) break;
      const Position next = life.accesses[a + 1].position;
      if (next == last + 1) continue;
      append(size, written, last, next);
      mark();
    }
    if (!life.outlives_step()) return;
    append(size, written, last, life.whole_step);
    mark();
    intervals_.back().stays_far = home == ExactHome::kFar;
    intervals_.back().needs_copy = home == ExactHome::kNearWithCopy && written >= 0;
  }

  [[nodiscard]] std::vector<ExactInterval> take() { return std::move(intervals_); }

 private:
  void append(um::Bytes size, std::int64_t written, std::int64_t last, Position next) {
    intervals_.push_back({.size = static_cast<std::int64_t>(size.count()),
                          .available = link_.copies_while_read ? written : last,
                          .last = last,
                          .next = next,
                          .out = (link_.latency + size / link_.offload).count(),
                          .in = (link_.latency + size / link_.prefetch).count(),
                          .first = first_});
  }

  LinkProfile link_;
  std::size_t first_ = 0;
  std::vector<ExactInterval> intervals_;
};

/// Finds the shortest makespan of any schedule that executes a fixed sequence of runs and offloads
/// whole blocks between two uses; nullopt when none fits. For graphs with a handful of blocks that
/// are idle between uses.
///
/// Searches over all decisions: which idle intervals are spent far, every order of offloads and of
/// prefetches, and how these interleave with the runs. Everything starts when something else ends:
/// any other schedule can be shifted left to such a one. A block may be copied out after the last
/// run that uses it before its idle interval, or after its last write if the link copies while
/// tasks read. A block that has been far and not written since is freed without a transfer. Its
/// memory is free when both the copy and that run have ended, and taken when a prefetch starts. On
/// a link that is not duplex, moves exclude each other. (One case is not searched: a block that is
/// copied early for a later idle interval and leaves before it.) Of two states with the same
/// progress and activity, one that is never earlier is dropped. The state with the earliest
/// possible end is expanded first.
///
/// Offloadable state is at its place in `homes` when the step begins and ends. A home near with a
/// far copy also ends with a valid copy, which is made by an offload and a return.
class ExactSolver {
 public:
  /// Every task once, in order, with its first algorithm.
  explicit ExactSolver(const Problem& problem)
      : ExactSolver{problem, runs_in_order(problem.graph)} {}

  /// `homes`: offloadable state by DataId; empty: all near.
  ExactSolver(const Problem& problem, const std::vector<TaskRun>& runs,
              const std::vector<ExactHome>& homes = {})
      : link_{problem.profile.link} {
    const BlockSizes block_sizes{problem.graph, problem.page};
    const std::vector<Life> lives = find_lives(problem.graph, runs);
    pool_ = signed_size(block_sizes.pool(problem.budget));
    for (const TaskRun& run : runs) times_.push_back(problem.profile(run).count());
    for (const um::Bytes size : demand(problem.graph, block_sizes, runs, lives)) {
      during_.push_back(signed_size(size));
    }
    before_.assign(runs.size() + 1, 0);
    ExactIntervals intervals{link_};
    for (const Life& life : lives) {
      const um::Bytes size = block_sizes.size(life.data);
      const Position begin = life.outlives_step() ? 0 : life.begin() + 1;
      const Position end = life.outlives_step() ? life.whole_step + 1 : life.last() + 1;
      for (Position p = begin; p < end; ++p) before_[p] += signed_size(size);
      const auto data = static_cast<std::size_t>(life.data);
      intervals.add(life, size, homes.empty() ? ExactHome::kNear : homes[data]);
    }
    blocks_ = intervals.take();
  }

  /// Requires: called once. Searches only makespans up to `limit`.
  std::optional<um::Nanoseconds> solve(um::Nanoseconds limit = um::Nanoseconds{kNever}) {
    State start{.blocks = std::vector<Where>(blocks_.size(), kNear)};
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].starts_far) start.blocks[i] = kFar;
    }
    push(std::move(start));
    while (!open_.empty()) {
      const State state = open_.top();
      open_.pop();
      if (state.end >= limit.count()) return std::nullopt;
      if (state.run == times_.size() && is_at_home(state)) return um::Nanoseconds{state.end};
      if (state.run < times_.size()) start_run(state);
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
  struct State {
    std::size_t run = 0;  // the next run to start
    std::array<bool, 3> is_busy{};
    std::array<std::int64_t, 3> free_at{};  // by resource; now if it is idle
    std::int64_t now = 0;
    std::int64_t end = 0;  // lower bound of the step's end
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

  // True when state is at its home, or returning there.
  [[nodiscard]] bool is_at_home(const State& state) const {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].next != times_.size()) continue;
      const Where where = state.blocks[i];
      if (blocks_[i].stays_far) {
        if (where != kFar && where != kCopied) return false;
        continue;
      }
      if (where != kNear && where != kComing && where != kBack) return false;
      const bool has_copy = where != kNear || has_far_copy(state, i);
      if (blocks_[i].needs_copy && !has_copy) return false;
    }
    return true;
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
  [[nodiscard]] std::int64_t runs_ended(const State& state) const {
    return static_cast<std::int64_t>(state.run) - (state.is_busy[kCompute] ? 1 : 0);
  }
  [[nodiscard]] bool link_is_free(const State& state, Resource direction) const {
    const Resource other = direction == kOffload ? kPrefetch : kOffload;
    return !state.is_busy[direction] && (link_.is_duplex || !state.is_busy[other]);
  }

  // True when an earlier visit had the same progress and was never later.
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

  // Assumes that remaining runs, and remaining moves, follow one another without gaps.
  [[nodiscard]] std::int64_t earliest_end(const State& state) const {
    std::int64_t computed = state.free_at[kCompute];
    for (std::size_t p = state.run; p < times_.size(); ++p) computed += times_[p];
    std::int64_t moved = state.free_at[kPrefetch];
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const bool is_to_come =
          state.blocks[i] != kNear && state.blocks[i] < kComing && !blocks_[i].stays_far;
      if (is_to_come) moved += blocks_[i].in;
    }
    return std::max({computed, moved, state.now});
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
    const ExactInterval& block = blocks_[i];
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

  // True when a later idle interval of the same content has already been copied out.
  [[nodiscard]] bool is_left_for_later(const State& state, std::size_t i) const {
    for (std::size_t j = i + 1; j < blocks_.size() && blocks_[j].first == blocks_[i].first; ++j) {
      if (state.blocks[j] != kNear) return true;
    }
    return false;
  }
  // True when an earlier idle interval of the same content has not ended.
  [[nodiscard]] bool is_away(const State& state, std::size_t i) const {
    for (std::size_t j = blocks_[i].first; j < i; ++j) {
      if (state.blocks[j] != kNear && state.blocks[j] != kBack) return true;
    }
    return false;
  }
  [[nodiscard]] bool has_far_copy(const State& state, std::size_t i) const {
    if (blocks_[i].has_first_copy) return true;
    for (std::size_t j = blocks_[i].first; j < i; ++j) {
      if (state.blocks[j] == kBack) return true;
    }
    return false;
  }

  void start_prefetch(const State& state, std::size_t i) {
    if (state.blocks[i] != kFar || blocks_[i].stays_far || !link_is_free(state, kPrefetch)) return;
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

  // Advances to the next end of anything.
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
  std::vector<std::int64_t> before_;  // by run: as during_, between the previous run and this one
  std::vector<ExactInterval> blocks_;
  std::map<std::vector<int>, std::vector<Times>> seen_;
  std::priority_queue<State, std::vector<State>, LaterFirst> open_;
};

/// Returns the shortest makespan over all homes of all state; nullopt when none fits.
inline std::optional<um::Nanoseconds> shortest_with_state(const Problem& problem) {
  std::vector<ExactHome> homes(problem.graph.data.size(), ExactHome::kNear);
  std::vector<std::size_t> state;
  for (std::size_t i = 0; i < homes.size(); ++i) {
    if (problem.graph.data[i].is_offloadable) state.push_back(i);
  }
  std::optional<um::Nanoseconds> best;
  for (bool is_through = false; !is_through;) {
    ExactSolver solver{problem, runs_in_order(problem.graph), homes};
    const auto found = best ? solver.solve(*best) : solver.solve();
    if (found && (!best || *found < *best)) best = found;
    is_through = true;  // unless some home can still advance to the next combination
    for (const std::size_t i : state) {
      is_through = homes[i] == ExactHome::kFar;
      homes[i] = is_through ? ExactHome::kNear : ExactHome(static_cast<int>(homes[i]) + 1);
      if (!is_through) break;
    }
  }
  return best;
}

}  // namespace spillway::prefetch::testing
