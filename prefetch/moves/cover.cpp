#include "prefetch/moves/cover.h"

#include <algorithm>
#include <queue>

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Among idle intervals, the one whose block was used longest ago comes first; of equals the one
// that lasts longest.
struct LaterFirst {
  const std::vector<IdleInterval>& idle;
  bool operator()(std::size_t a, std::size_t b) const {
    if (idle[a].last != idle[b].last) return idle[a].last > idle[b].last;
    if (idle[a].next != idle[b].next) return idle[a].next < idle[b].next;
    return a > b;
  }
};

// In order of `last`: where blocks may be far.
std::vector<IdleInterval> find_candidates(const BlockSizes& block_sizes,
                                          std::span<const Life> lives,
                                          const std::vector<bool>& far_between_steps) {
  std::vector<IdleInterval> idle = find_idle_intervals(block_sizes, lives);
  for (const Life& life : lives) {
    const auto data = static_cast<std::size_t>(life.data);
    if (data >= far_between_steps.size() || !far_between_steps[data]) continue;
    if (!block_sizes.is_movable(life.data)) continue;
    idle.push_back(idle_interval_at(life, life.whole_step));
    idle.back().next = life.whole_step;
    idle.back().to_end = true;
  }
  std::ranges::stable_sort(idle, {}, &IdleInterval::last);
  return idle;
}

class Cover {
 public:
  Cover(const BlockSizes& block_sizes, std::span<const Life> lives, std::size_t runs,
        const CoverOptions& options)
      : block_sizes_{block_sizes},
        options_{options},
        idle_{find_candidates(block_sizes, lives, options.far_between_steps)},
        taken_(idle_.size()),
        returning_(runs + 1) {
    for (const IdleInterval& idle : idle_) {
      const auto blocks = static_cast<std::size_t>(idle.data) + 1;
      if (far_copies_.size() < blocks) far_copies_.resize(blocks);
    }
  }

  // Makes room for run `position`, which needs `demand` when nothing is away. False when that
  // cannot be done.
  bool make_room(Position position, Bytes demand, Bytes pool) {
    away_ -= returning_[position];
    while (next_idle_ < idle_.size() && idle_[next_idle_].last < position) {
      open_.push(next_idle_++);
    }
    while (demand > pool + away_) {
      while (!open_.empty() && is_used_up(open_.top(), position)) open_.pop();
      if (open_.empty()) return false;
      take(open_.top(), demand - away_ - pool, position);
    }
    return true;
  }

  // What must have left when `runs` runs have ended, whether or not a run counts on its room.
  void finish(Position runs) {
    for (std::size_t i = 0; i < idle_.size(); ++i) {
      if (idle_[i].to_end && taken_[i] < size(i)) take(i, size(i), runs);
    }
  }

  std::vector<FarInterval> take_result() { return std::move(far_intervals_); }

 private:
  [[nodiscard]] Bytes size(std::size_t i) const { return block_sizes_.size(idle_[i].data); }

  [[nodiscard]] bool is_used_up(std::size_t i, Position position) const {
    return idle_[i].next <= position || taken_[i] == size(i);
  }

  void take(std::size_t i, Bytes wanted, Position position) {
    const IdleInterval& idle = idle_[i];
    Bytes& taken = taken_[i];
    const Bytes left = size(i) - taken;
    const Bytes amount = options_.whole_blocks ? left : std::min(left, wanted);
    const Bytes end = taken + amount;
    FarCopy& copy = far_copies_[static_cast<std::size_t>(idle.data)];
    if (copy.made_after < idle.written) copy = {.made_after = idle.written, .size = {}};
    while (taken < end) {
      // Cut where the far copy ends: the first part need not be transferred again.
      Bytes part = taken < copy.size ? std::min(end, copy.size) - taken : end - taken;
      if (!options_.whole_blocks) part = std::min(part, options_.chunk);
      far_intervals_.push_back({idle, taken, part, position});
      taken += part;
      copy.size = std::max(copy.size, taken);
    }
    away_ += amount;
    returning_[idle.next] += amount;
  }

  // The leading bytes of a block that went away after it was last written.
  struct FarCopy {
    Position made_after;
    Bytes size;
  };

  const BlockSizes& block_sizes_;
  CoverOptions options_;
  std::vector<IdleInterval> idle_;
  std::vector<Bytes> taken_;         // by idle interval: bytes that are far in it
  std::vector<Bytes> returning_;     // by position: bytes that are away no more
  std::vector<FarCopy> far_copies_;  // by block
  std::vector<FarInterval> far_intervals_;
  Bytes away_;
  std::size_t next_idle_ = 0;
  std::priority_queue<std::size_t, std::vector<std::size_t>, LaterFirst> open_{LaterFirst{idle_}};
};

}  // namespace

std::vector<Bytes> without(std::span<const Bytes> demand,
                           std::span<const FarInterval> far_intervals) {
  std::vector<Bytes> leaves(demand.size() + 1);
  std::vector<Bytes> returns(demand.size() + 1);
  for (const FarInterval& far_interval : far_intervals) {
    leaves[far_interval.needed] += far_interval.size;
    returns[far_interval.next] += far_interval.size;
  }
  std::vector<Bytes> near;
  near.reserve(demand.size());
  Bytes away;
  for (Position p = 0; p < demand.size(); ++p) {
    away = away + leaves[p] - returns[p];
    near.push_back(demand[p] - away);
  }
  return near;
}

std::optional<std::vector<FarInterval>> cover(const BlockSizes& block_sizes,
                                              std::span<const Bytes> demand,
                                              std::span<const Life> lives, Bytes pool,
                                              const CoverOptions& options) {
  Cover cover{block_sizes, lives, demand.size(), options};
  for (Position position = 0; position < demand.size(); ++position) {
    if (!cover.make_room(position, demand[position], pool)) return std::nullopt;
  }
  cover.finish(static_cast<Position>(demand.size()));
  return cover.take_result();
}

}  // namespace spillway::prefetch
