#include "prefetch/rests.h"

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

class RestFinder {
 public:
  RestFinder(const TaskGraph& graph, const Occupancy& occupancy, std::span<const Life> lives,
             std::span<const double> before, bool may_recompute)
      : graph_{graph},
        occupancy_{occupancy},
        lives_{lives},
        before_{before},
        may_recompute_{may_recompute},
        lives_of_(graph.data.size()) {
    for (std::size_t i = 0; i < lives.size(); ++i) {
      lives_of_[static_cast<std::size_t>(lives[i].data)].push_back(i);
    }
  }

  std::vector<Rest> find() {
    for (const Life& life : lives_) {
      if (occupancy_.is_movable(life.data) && !life.outlives_step()) add_rests(life);
    }
    if (may_recompute_) add_ingredients();
    return std::move(rests_);
  }

 private:
  void add_rests(const Life& life) {
    std::vector<Position> makers;
    bool is_recomputable = may_recompute_;
    for (std::size_t a = 0; a + 1 < life.accesses.size(); ++a) {
      const BlockAccess& access = life.accesses[a];
      if (access.writes) {
        makers.push_back(access.position);
        is_recomputable = is_recomputable && graph_.tasks[access.position].is_recomputable;
      }
      um::expects(!makers.empty(), "a tensor is written before it is read");
      const Position next = life.accesses[a + 1].position;
      if (next <= access.position + 1) continue;
      rests_.push_back({.data = life.data,
                        .written = makers.back(),
                        .last = access.position,
                        .next = next,
                        .size = to_double(occupancy_.size(life.data)),
                        .available = before_[makers.back() + 1],
                        .due = before_.back() - before_[next],
                        .makers = is_recomputable ? makers : std::vector<Position>{},
                        .ingredients = {}});
    }
  }

  // A life that tasks to be run again read, and the last of them.
  using Reads = std::map<std::size_t, Position>;

  void add_ingredients() {
    std::vector<Reads> reads;
    std::vector<std::set<DataId>> needed_for(lives_.size());
    for (const Rest& rest : rests_) {
      reads.push_back(reads_of(rest));
      for (const auto& [life, reader] : reads.back()) needed_for[life].insert(rest.data);
    }
    for (std::size_t r = 0; r < rests_.size(); ++r) {
      for (const auto& [life, reader] : reads[r]) {
        rests_[r].ingredients.push_back(ingredient(lives_[life], reader, needed_for[life].size()));
      }
    }
  }

  [[nodiscard]] Reads reads_of(const Rest& rest) const {
    Reads reads;
    for (const Position maker : rest.makers) {  // in order: the last one stays
      for (const DataId id : graph_.tasks[maker].reads) {
        if (id != rest.data && is_movable_tensor(id)) reads[life_at(id, maker)] = maker;
      }
    }
    return reads;
  }
  [[nodiscard]] bool is_movable_tensor(DataId id) const {
    return graph_[id].kind == DataKind::kTensor && occupancy_.is_movable(id);
  }

  // Only what was written when `reader` read it is made again.
  [[nodiscard]] Ingredient ingredient(const Life& life, Position reader, std::size_t users) const {
    Ingredient result{.makers = {},
                      .last = life.last(),
                      .size = to_double(occupancy_.size(life.data)) / static_cast<double>(users),
                      .available = before_[life.begin() + 1]};
    for (const BlockAccess& access : life.accesses) {
      if (access.writes && access.position < reader) result.makers.push_back(access.position);
    }
    const bool may_rerun = std::ranges::all_of(
        result.makers, [&](Position maker) { return graph_.tasks[maker].is_recomputable; });
    if (!may_rerun) result.makers.clear();
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
  const Occupancy& occupancy_;
  std::span<const Life> lives_;
  std::span<const double> before_;
  bool may_recompute_;
  std::vector<std::vector<std::size_t>> lives_of_;  // by block, in order
  std::vector<Rest> rests_;
};

}  // namespace

std::vector<Rest> find_rests(const TaskGraph& graph, const Occupancy& occupancy,
                             std::span<const Life> lives, std::span<const double> before,
                             bool may_recompute) {
  return RestFinder{graph, occupancy, lives, before, may_recompute}.find();
}

}  // namespace spillway::prefetch
