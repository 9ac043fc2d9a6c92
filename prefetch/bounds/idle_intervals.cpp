#include "prefetch/bounds/idle_intervals.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

double to_double(um::Bytes size) { return static_cast<double>(size.count()); }

class IdleIntervalFinder {
 public:
  IdleIntervalFinder(const TaskGraph& graph, const BlockSizes& block_sizes,
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

  std::vector<IdleInterval> find() {
    for (const Life& life : lives_) {
      if (block_sizes_.is_movable(life.data) && !life.outlives_step()) add_rests(life);
    }
    if (may_recompute_) add_recompute_inputs();
    return std::move(rests_);
  }

 private:
  void add_rests(const Life& life) {
    std::vector<Position> producers;
    bool is_recomputable = may_recompute_;
    for (std::size_t a = 0; a + 1 < life.accesses.size(); ++a) {
      const BlockAccess& access = life.accesses[a];
      if (access.writes) {
        producers.push_back(access.position);
        is_recomputable = is_recomputable && graph_.tasks[access.position].is_recomputable;
      }
      um::expects(!producers.empty(), "a tensor is written before it is read");
      const Position next = life.accesses[a + 1].position;
      if (next <= access.position + 1) continue;
      rests_.push_back({.data = life.data,
                        .written = producers.back(),
                        .last = access.position,
                        .next = next,
                        .size = to_double(block_sizes_.size(life.data)),
                        .available = before_[producers.back() + 1],
                        .due = before_.back() - before_[next],
                        .producers = is_recomputable ? producers : std::vector<Position>{},
                        .recompute_inputs = {}});
    }
  }

  // A life that tasks to be run again read, and the last of them.
  using Reads = std::map<std::size_t, Position>;

  void add_recompute_inputs() {
    std::vector<Reads> reads;
    std::vector<std::set<DataId>> needed_for(lives_.size());
    for (const IdleInterval& idle : rests_) {
      reads.push_back(reads_of(idle));
      for (const auto& [life, reader] : reads.back()) needed_for[life].insert(idle.data);
    }
    for (std::size_t r = 0; r < rests_.size(); ++r) {
      for (const auto& [life, reader] : reads[r]) {
        rests_[r].recompute_inputs.push_back(
            recompute_input(lives_[life], reader, needed_for[life].size()));
      }
    }
  }

  [[nodiscard]] Reads reads_of(const IdleInterval& idle) const {
    Reads reads;
    for (const Position producer : idle.producers) {  // in order: the last one stays
      for (const DataId id : graph_.tasks[producer].reads) {
        if (id != idle.data && is_movable_tensor(id)) reads[life_at(id, producer)] = producer;
      }
    }
    return reads;
  }
  [[nodiscard]] bool is_movable_tensor(DataId id) const {
    return graph_[id].kind == DataKind::kTensor && block_sizes_.is_movable(id);
  }

  // Only what was written when `reader` read it is made again.
  [[nodiscard]] RecomputeInput recompute_input(const Life& life, Position reader,
                                               std::size_t users) const {
    RecomputeInput result{
        .producers = {},
        .last = life.last(),
        .size = to_double(block_sizes_.size(life.data)) / static_cast<double>(users),
        .available = before_[life.begin() + 1]};
    for (const BlockAccess& access : life.accesses) {
      if (access.writes && access.position < reader) result.producers.push_back(access.position);
    }
    const bool may_rerun = std::ranges::all_of(result.producers, [&](Position producer) {
      return graph_.tasks[producer].is_recomputable;
    });
    if (!may_rerun) result.producers.clear();
    return result;
  }

  // The life of the block that task `reader` reads.
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
  std::vector<IdleInterval> rests_;
};

}  // namespace

std::vector<IdleInterval> find_rests(const TaskGraph& graph, const BlockSizes& block_sizes,
                                     std::span<const Life> lives, std::span<const double> before,
                                     bool may_recompute) {
  return IdleIntervalFinder{graph, block_sizes, lives, before, may_recompute}.find();
}

}  // namespace spillway::prefetch
