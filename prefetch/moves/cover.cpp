#include "prefetch/moves/cover.h"

#include <algorithm>
#include <queue>

namespace spillway::prefetch {
namespace {

using um::Bytes;

// The time between two uses of a block, and how much of the block has been sent away in it.
struct Gap {
  std::size_t life;
  Position written;  // the last write before it
  Position last;
  Position next;
  Bytes taken;
  bool to_end = false;  // what leaves does not come back
  bool is_written = true;
};

// Among gaps, the one whose block was used longest ago comes first; of equals the one that lasts
// longest.
struct LaterFirst {
  const std::vector<Gap>& gaps;
  bool operator()(std::size_t a, std::size_t b) const {
    if (gaps[a].last != gaps[b].last) return gaps[a].last > gaps[b].last;
    if (gaps[a].next != gaps[b].next) return gaps[a].next < gaps[b].next;
    return a > b;
  }
};

std::vector<Gap> find_gaps(const BlockSizes& block_sizes, std::span<const Life> lives,
                           const std::vector<bool>& far_between_steps) {
  std::vector<Gap> gaps;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    const Life& life = lives[i];
    if (!block_sizes.is_movable(life.data)) continue;
    Position written = life.begin();
    bool is_written = !life.outlives_step();
    const auto note = [&](const BlockAccess& access) {
      if (access.writes) written = access.position;
      is_written = is_written || access.writes;
    };
    for (std::size_t a = 0; a + 1 < life.accesses.size(); ++a) {
      const Position last = life.accesses[a].position;
      const Position next = life.accesses[a + 1].position;
      note(life.accesses[a]);
      if (next > last + 1) {
        gaps.push_back({.life = i,
                        .written = written,
                        .last = last,
                        .next = next,
                        .taken = {},
                        .is_written = is_written});
      }
    }
    const auto data = static_cast<std::size_t>(life.data);
    if (data >= far_between_steps.size() || !far_between_steps[data]) continue;
    note(life.accesses.back());
    gaps.push_back({.life = i,
                    .written = written,
                    .last = life.accesses.back().position,
                    .next = life.whole_step,
                    .taken = {},
                    .to_end = true,
                    .is_written = is_written});
  }
  std::ranges::stable_sort(gaps, {}, &Gap::last);
  return gaps;
}

class Cover {
 public:
  Cover(const BlockSizes& block_sizes, std::span<const Life> lives, std::size_t runs,
        const CoverOptions& options)
      : block_sizes_{block_sizes},
        lives_{lives},
        options_{options},
        gaps_{find_gaps(block_sizes, lives, options.far_between_steps)},
        returning_(runs + 1),
        far_copies_(lives.size()) {}

  // Makes room for run `position`, which needs `demand` when nothing is away. False when that
  // cannot be done.
  bool make_room(Position position, Bytes demand, Bytes pool) {
    away_ -= returning_[position];
    while (next_gap_ < gaps_.size() && gaps_[next_gap_].last < position) open_.push(next_gap_++);
    while (demand > pool + away_) {
      while (!open_.empty() && is_used_up(open_.top(), position)) open_.pop();
      if (open_.empty()) return false;
      take(open_.top(), demand - away_ - pool, position);
    }
    return true;
  }

  // What must have left when `runs` runs have ended, whether or not a run counts on its room.
  void finish(Position runs) {
    for (std::size_t i = 0; i < gaps_.size(); ++i) {
      if (gaps_[i].to_end && gaps_[i].taken < size(gaps_[i])) take(i, size(gaps_[i]), runs);
    }
  }

  std::vector<FarInterval> take_result() { return std::move(far_intervals_); }

 private:
  [[nodiscard]] Bytes size(const Gap& gap) const {
    return block_sizes_.size(lives_[gap.life].data);
  }

  [[nodiscard]] bool is_used_up(std::size_t gap, Position position) const {
    return gaps_[gap].next <= position || gaps_[gap].taken == size(gaps_[gap]);
  }

  void take(std::size_t index, Bytes wanted, Position position) {
    Gap& gap = gaps_[index];
    const Bytes rest = size(gap) - gap.taken;
    const Bytes amount = options_.whole_blocks ? rest : std::min(rest, wanted);
    const Bytes end = gap.taken + amount;
    FarCopy& copy = far_copies_[gap.life];
    if (copy.made_after < gap.written) copy = {.made_after = gap.written, .size = {}};
    while (gap.taken < end) {
      // Cut where the far copy ends: the first part need not be transferred again.
      Bytes part = gap.taken < copy.size ? std::min(end, copy.size) - gap.taken : end - gap.taken;
      if (!options_.whole_blocks) part = std::min(part, options_.chunk);
      far_intervals_.push_back({.data = lives_[gap.life].data,
                                .offset = gap.taken,
                                .size = part,
                                .written = gap.written,
                                .last = gap.last,
                                .next = gap.next,
                                .needed = position,
                                .to_end = gap.to_end,
                                .is_written = gap.is_written});
      gap.taken += part;
      copy.size = std::max(copy.size, gap.taken);
    }
    away_ += amount;
    returning_[gap.next] += amount;
  }

  // The leading bytes of a block that went away after it was last written.
  struct FarCopy {
    Position made_after;
    Bytes size;
  };

  const BlockSizes& block_sizes_;
  std::span<const Life> lives_;
  CoverOptions options_;
  std::vector<Gap> gaps_;
  std::vector<Bytes> returning_;     // by position: bytes that are away no more
  std::vector<FarCopy> far_copies_;  // by life
  std::vector<FarInterval> far_intervals_;
  Bytes away_;
  std::size_t next_gap_ = 0;
  std::priority_queue<std::size_t, std::vector<std::size_t>, LaterFirst> open_{LaterFirst{gaps_}};
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
