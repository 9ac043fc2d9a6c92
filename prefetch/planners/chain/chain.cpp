#include "prefetch/planners/chain/chain.h"

#include <algorithm>
#include <cstddef>

#include "prefetch/block_sizes.h"
#include "prefetch/moves/saved_blocks.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Finds the forward tasks after which the graph can be cut into a chain.
class CutFinder {
 public:
  CutFinder(const std::vector<ForwardLife>& lives, Position forward_end)
      : lives_{lives}, crossing_(forward_end + 1), refusing_(forward_end + 1) {
    find_last_reads();
    for (const ForwardLife& life : lives_) {
      if (life.size > Bytes{}) add(crossing_, life.begin, life.last_forward);
      add(refusing_, life.begin, life.last_forward_write);
      if (life.size > Bytes{}) refuse_early_reads(life);
    }
  }

  // Returns the stages, as the ends of their forward tasks.
  [[nodiscard]] std::vector<Position> ends() const {
    std::vector<Position> result;
    int crossing = 0;
    int refusing = 0;
    const auto forward_end = static_cast<Position>(crossing_.size() - 1);
    for (Position p = 0; p + 1 < forward_end; ++p) {
      crossing += crossing_[p];
      refusing += refusing_[p];
      if (crossing == 1 && refusing == 0) result.push_back(p + 1);
    }
    result.push_back(forward_end);
    return result;
  }

 private:
  // Adds one to each cut after a task in [begin, end).
  static void add(std::vector<int>& steps, Position begin, Position end) {
    if (begin >= end) return;
    ++steps[begin];
    --steps[end];
  }

  // last_read_[p]: the last run that uses blocks made after p. It decreases with p.
  void find_last_reads() {
    last_read_.assign(crossing_.size(), 0);
    for (const ForwardLife& life : lives_) {
      if (life.begin == 0) continue;
      Position& last = last_read_[life.begin - 1];
      last = std::max(last, life.last);
    }
    for (std::size_t p = last_read_.size() - 1; p > 0; --p) {
      last_read_[p - 1] = std::max(last_read_[p - 1], last_read_[p]);
    }
  }

  // A block that is not a cut's output must not be read before the last read of blocks made after
  // the cut.
  void refuse_early_reads(const ForwardLife& life) {
    const auto later =
        std::partition_point(last_read_.begin(), last_read_.end(),
                             [&](Position last) { return last >= life.first_backward; });
    add(refusing_, std::max(life.begin, life.last_forward),
        std::min(static_cast<Position>(later - last_read_.begin()),
                 static_cast<Position>(refusing_.size() - 1)));
  }

  const std::vector<ForwardLife>& lives_;
  std::vector<int> crossing_;  // by forward task: change of the number of live tensors
  std::vector<int> refusing_;  // by forward task: change of the number of reasons not to cut
  std::vector<Position> last_read_;
};

um::Nanoseconds time_of(const Profile& profile, const std::vector<TaskRun>& runs, TaskRange range) {
  um::Nanoseconds time{0};
  for (Position p = range.begin; p < range.end; ++p) time += profile(runs[p]);
  return time;
}

// Joins neighbours until there are at most `max`.
std::vector<TaskRange> join_short(const Profile& profile, const std::vector<TaskRun>& runs,
                                  const std::vector<Position>& ends, std::size_t max) {
  std::vector<TaskRange> ranges;
  std::vector<um::Nanoseconds> times;
  for (const Position end : ends) {
    ranges.push_back({.begin = ranges.empty() ? 0 : ranges.back().end, .end = end});
    times.push_back(time_of(profile, runs, ranges.back()));
  }
  while (ranges.size() > max) {
    std::size_t min = 0;
    for (std::size_t i = 1; i + 1 < times.size(); ++i) {
      if (times[i] + times[i + 1] < times[min] + times[min + 1]) min = i;
    }
    ranges[min].end = ranges[min + 1].end;
    times[min] += times[min + 1];
    const auto next = static_cast<std::ptrdiff_t>(min + 1);
    ranges.erase(ranges.begin() + next);
    times.erase(times.begin() + next);
  }
  return ranges;
}

// Completes stages with known forward tasks.
class StageFiller {
 public:
  StageFiller(const TaskGraph& graph, const BlockSizes& block_sizes,
              const std::vector<TaskRun>& runs, const std::vector<Life>& lives,
              const std::vector<TaskRange>& ranges)
      : graph_{graph},
        block_sizes_{block_sizes},
        runs_{runs},
        lives_{lives},
        forward_end_{ranges.back().end},
        stages_(ranges.size()) {
    for (std::size_t i = 0; i < ranges.size(); ++i) stages_[i].forward = ranges[i];
    uses_ =
        find_forward_lives(block_sizes, forward_end_, static_cast<Position>(runs.size()), lives);
  }

  std::vector<ChainStage> fill(const Profile& profile) {
    divide_backward();
    for (ChainStage& stage : stages_) {
      stage.forward_time = time_of(profile, runs_, stage.forward);
      stage.backward_time = time_of(profile, runs_, stage.backward);
      for (Position p = stage.forward.begin; p < stage.forward.end; ++p) {
        stage.is_recomputable = stage.is_recomputable && graph_.tasks[p].is_recomputable;
      }
    }
    add_blocks();
    add_gradients();
    add_extras();
    return std::move(stages_);
  }

 private:
  [[nodiscard]] std::size_t stage_of(Position forward) const {
    const auto found = std::ranges::upper_bound(
        stages_, forward, {}, [](const ChainStage& stage) { return stage.forward.end; });
    return static_cast<std::size_t>(found - stages_.begin());
  }

  // A stage's backward tasks end with the last read of blocks of its or of a later stage.
  void divide_backward() {
    for (const ForwardLife& use : uses_) {
      Position& end = stages_[stage_of(use.begin)].backward.end;
      if (use.last >= forward_end_) end = std::max(end, use.last + 1);
    }
    Position begin = forward_end_;
    for (std::size_t i = stages_.size(); i-- > 0;) {
      TaskRange& range = stages_[i].backward;
      range = {.begin = begin, .end = std::max(begin, range.end)};
      begin = range.end;
    }
    stages_.front().backward.end = static_cast<Position>(runs_.size());
  }

  void add_blocks() {
    for (const ForwardLife& use : uses_) {
      ChainStage& stage = stages_[stage_of(use.begin)];
      const bool is_output =
          use.last_forward >= stage.forward.end && stage.forward.end < forward_end_;
      const bool is_saved = use.last >= forward_end_;
      if (is_output) stage.output += use.size;
      if (is_saved) stage.saved += use.size;
      if (is_output || is_saved) stage.kept += use.size;
    }
  }

  void add_gradients() {
    for (const Life& life : lives_) {
      if (life.begin() < forward_end_) continue;
      for (std::size_t i = 0; i + 1 < stages_.size(); ++i) {
        const Position boundary = stages_[i].backward.begin;
        if (life.begin() < boundary && boundary <= life.last()) {
          stages_[i].gradient += block_sizes_.size(life.data);
        }
      }
    }
  }

  // Returns the most bytes that a run of `range` needs: blocks begun from `first` on, each until
  // its `last_near`, and workspace.
  template <typename LastNear>
  [[nodiscard]] Bytes max_near(TaskRange range, Position first, const LastNear& last_near) const {
    std::vector<Bytes> begins(range.end - range.begin + 1);
    std::vector<Bytes> ends(begins.size());
    for (const Life& life : lives_) {
      const Position last = last_near(life);
      if (life.begin() < first || last < range.begin || life.begin() >= range.end) continue;
      begins[std::max(life.begin(), range.begin) - range.begin] += block_sizes_.size(life.data);
      ends[std::min(last + 1, range.end) - range.begin] += block_sizes_.size(life.data);
    }
    Bytes max;
    Bytes near;
    for (Position p = range.begin; p < range.end; ++p) {
      near = near + begins[p - range.begin] - ends[p - range.begin];
      const Bytes workspace = graph_[runs_[p].task].algorithms[runs_[p].algorithm].workspace;
      max = std::max(max, near + block_sizes_.workspace_size(workspace));
    }
    return max;
  }

  void add_extras() {
    const auto whole_life = [](const Life& life) { return life.last(); };
    const auto forward_life = [&](const Life& life) {
      Position last = life.begin();
      for (const BlockAccess& access : life.accesses) {
        if (access.position < forward_end_) last = access.position;
      }
      return last;
    };
    Bytes input_gradient;
    for (ChainStage& stage : stages_) {
      const Position first = stage.forward.begin;
      stage.forward_extra =
          um::saturating_difference(max_near(stage.forward, first, whole_life), stage.kept);
      stage.passing_extra =
          um::saturating_difference(max_near(stage.forward, first, forward_life), stage.output);
      stage.backward_extra =
          um::saturating_difference(max_near(stage.backward, first, whole_life),
                                    stage.kept + stage.gradient + input_gradient);
      input_gradient = stage.gradient;
    }
  }

  const TaskGraph& graph_;
  const BlockSizes& block_sizes_;
  const std::vector<TaskRun>& runs_;
  const std::vector<Life>& lives_;
  Position forward_end_;
  std::vector<ChainStage> stages_;
  std::vector<ForwardLife> uses_;
};

}  // namespace

std::vector<ForwardLife> find_forward_lives(const BlockSizes& block_sizes, Position forward_end,
                                            Position runs, const std::vector<Life>& lives) {
  std::vector<ForwardLife> result;
  for (const Life& life : lives) {
    if (life.begin() >= forward_end) continue;
    ForwardLife use{.size = block_sizes.size(life.data),
                    .begin = life.begin(),
                    .first_backward = runs,
                    .last = life.last()};
    for (const BlockAccess& access : life.accesses) {
      if (access.position >= forward_end) {
        use.first_backward = access.position;
        break;
      }
      use.last_forward = access.position;
      if (access.writes) use.last_forward_write = access.position;
    }
    result.push_back(use);
  }
  return result;
}

std::vector<Position> find_chain_cuts(const std::vector<ForwardLife>& lives, Position forward_end) {
  return CutFinder{lives, forward_end}.ends();
}

Chain linearise(const TaskGraph& graph, const Profile& profile, const BlockSizes& block_sizes,
                const std::vector<TaskRun>& runs, std::size_t max) {
  um::expects(max > 0, "a chain has a stage at least");
  const std::vector<Life> lives = find_lives(graph, runs);
  const Position end = forward_end(graph);
  const std::vector<ForwardLife> uses =
      find_forward_lives(block_sizes, end, static_cast<Position>(runs.size()), lives);
  const auto ranges = join_short(profile, runs, find_chain_cuts(uses, end), max);
  return {.stages = StageFiller{graph, block_sizes, runs, lives, ranges}.fill(profile)};
}

}  // namespace spillway::prefetch
