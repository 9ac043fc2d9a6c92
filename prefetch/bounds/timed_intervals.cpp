#include "prefetch/bounds/timed_intervals.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

class TimedIntervalFinder {
 public:
  TimedIntervalFinder(const TaskGraph& graph, const BlockSizes& block_sizes,
                      std::span<const Life> lives, std::span<const double> before,
                      bool may_recompute)
      : graph_{graph},
        block_sizes_{block_sizes},
        lives_{lives},
        before_{before},
        may_recompute_{may_recompute},
        lives_of_(graph.data.size()) {
    for (std::size_t i = 0; i < lives.size(); ++i) {
      lives_of_[static_cast<std::size_t>(lives[i].data)].push_back(i);
    }
  }

  std::vector<TimedInterval> find() {
    for (const IdleInterval& idle : find_idle_intervals(block_sizes_, lives_)) add(idle);
    for (const Life& life : lives_) {
      if (life.outlives_step() && block_sizes_.is_movable(life.data)) add_around_turn(life);
    }
    if (may_recompute_) add_recompute_inputs();
    return std::move(intervals_);
  }

 private:
  // For state: adds the intervals before its first use and after its last one.
  void add_around_turn(const Life& life) {
    IdleInterval idle = idle_interval_at(life, 0);
    idle.from_start = true;
    if (idle.next > 0 && !life.is_sent) add(idle);
    idle = idle_interval_at(life, life.whole_step);
    idle.next = life.whole_step;
    idle.to_end = true;
    if (idle.last + 1 < idle.next) add(idle);
  }

  void add(const IdleInterval& idle) {
    std::vector<Position> producers;
    if (graph_[idle.data].kind == DataKind::kTensor) {
      producers = writers(lives_[life_at(idle.data, idle.last)], idle.next);
      um::expects(!producers.empty(), "a tensor is written before it is read");
    }
    TimedInterval interval{idle};
    interval.size = to_double(block_sizes_.size(idle.data));
    interval.available = before_[idle.written + 1];
    interval.due = before_.back() - before_[idle.next];
    if (may_recompute_ && !producers.empty() && may_rerun(producers)) {
      interval.producers = std::move(producers);
    }
    intervals_.push_back(std::move(interval));
  }

  // Returns the tasks before `end` that write a life.
  static std::vector<Position> writers(const Life& life, Position end) {
    std::vector<Position> result;
    for (const BlockAccess& access : life.accesses) {
      if (access.writes && access.position < end) result.push_back(access.position);
    }
    return result;
  }
  [[nodiscard]] bool may_rerun(std::span<const Position> tasks) const {
    return std::ranges::all_of(tasks,
                               [&](Position task) { return graph_.tasks[task].is_recomputable; });
  }

  // By life: the last recomputed task that reads it.
  using Reads = std::map<std::size_t, Position>;

  void add_recompute_inputs() {
    std::vector<Reads> reads;
    std::vector<std::set<DataId>> needed_for(lives_.size());
    for (const TimedInterval& idle : intervals_) {
      reads.push_back(reads_of(idle));
      for (const auto& [life, reader] : reads.back()) needed_for[life].insert(idle.data);
    }
    for (std::size_t r = 0; r < intervals_.size(); ++r) {
      for (const auto& [life, reader] : reads[r]) {
        intervals_[r].recompute_inputs.push_back(
            recompute_input(lives_[life], reader, needed_for[life].size()));
      }
    }
  }

  [[nodiscard]] Reads reads_of(const TimedInterval& idle) const {
    Reads reads;
    for (const Position producer : idle.producers) {  // in order: the last one counts
      for (const DataId id : graph_.tasks[producer].reads) {
        if (id != idle.data && is_movable_tensor(id)) reads[life_at(id, producer)] = producer;
      }
    }
    return reads;
  }
  [[nodiscard]] bool is_movable_tensor(DataId id) const {
    return graph_[id].kind == DataKind::kTensor && block_sizes_.is_movable(id);
  }

  // Only writes before `reader` are repeated.
  [[nodiscard]] RecomputeInput recompute_input(const Life& life, Position reader,
                                               std::size_t users) const {
    RecomputeInput result{
        .producers = writers(life, reader),
        .last = life.last(),
        .size = to_double(block_sizes_.size(life.data)) / static_cast<double>(users),
        .available = before_[life.begin() + 1]};
    if (!may_rerun(result.producers)) result.producers.clear();
    return result;
  }

  // Returns the life of the block that task `reader` reads.
  [[nodiscard]] std::size_t life_at(DataId id, Position reader) const {
    const std::vector<std::size_t>& candidates = lives_of_[static_cast<std::size_t>(id)];
    const auto after = std::ranges::upper_bound(candidates, reader, {},
                                                [&](std::size_t i) { return lives_[i].begin(); });
    um::expects(after != candidates.begin(), "a tensor is written before it is read");
    return *std::prev(after);
  }

  const TaskGraph& graph_;
  const BlockSizes& block_sizes_;
  std::span<const Life> lives_;
  std::span<const double> before_;
  bool may_recompute_;
  std::vector<std::vector<std::size_t>> lives_of_;  // by block, in order
  std::vector<TimedInterval> intervals_;
};

}  // namespace

std::vector<TimedInterval> find_timed_intervals(const TaskGraph& graph,
                                                const BlockSizes& block_sizes,
                                                std::span<const Life> lives,
                                                std::span<const double> before,
                                                bool may_recompute) {
  return TimedIntervalFinder{graph, block_sizes, lives, before, may_recompute}.find();
}

}  // namespace spillway::prefetch
