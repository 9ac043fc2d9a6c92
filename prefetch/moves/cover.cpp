#include "prefetch/moves/cover.h"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

namespace spillway::prefetch {
namespace {

using um::Bytes;

// An idle interval, and what is preferred of it.
struct Candidate : IdleInterval {
  Preference preference = Preference::kInOrder;
};

// In order of `last`: where blocks may be far.
std::vector<Candidate> find_candidates(const BlockSizes& block_sizes, std::span<const Life> lives,
                                       const CoverOptions& options) {
  std::vector<Candidate> idle;
  for (const IdleInterval& each : find_idle_intervals(block_sizes, lives)) idle.push_back({each});
  const std::vector<bool>& far_between_steps = options.far_between_steps;
  for (const Life& life : lives) {
    const auto data = static_cast<std::size_t>(life.data);
    if (data >= far_between_steps.size() || !far_between_steps[data]) continue;
    if (!block_sizes.is_movable(life.data)) continue;
    idle.push_back({idle_interval_at(life, life.whole_step)});
    idle.back().next = life.whole_step;
    idle.back().to_end = true;
  }
  std::ranges::stable_sort(idle, {}, &IdleInterval::last);
  if (options.preferences.empty()) return idle;
  std::map<std::pair<DataId, std::uint32_t>, Preference> preferences;
  for (const MovePreference& each : options.preferences) {
    preferences[{each.data, each.interval}] = each.preference;
  }
  std::map<DataId, std::uint32_t> passed;  // idle intervals
  for (Candidate& each : idle) {
    const auto wanted = preferences.find({each.data, passed[each.data]++});
    if (wanted != preferences.end()) each.preference = wanted->second;
  }
  return idle;
}

// Orders idle intervals: those that leave first come last.
class LeavesLater {
 public:
  LeavesLater(const std::vector<Candidate>& idle, const BlockSizes& block_sizes, CoverOrder order)
      : idle_{&idle}, block_sizes_{&block_sizes}, order_{order} {}

  bool operator()(std::size_t a, std::size_t b) const {
    const Candidate& one = (*idle_)[a];
    const Candidate& other = (*idle_)[b];
    if (one.preference != other.preference && rank(one) != rank(other)) {
      return rank(one) > rank(other);
    }
    if (order_ == CoverOrder::kLargest) {
      const Bytes size = block_sizes_->size(one.data);
      const Bytes size_of_other = block_sizes_->size(other.data);
      if (size != size_of_other) return size < size_of_other;
    }
    if (order_ == CoverOrder::kLatestNext && one.next != other.next) return one.next < other.next;
    if (one.last != other.last) return one.last > other.last;
    if (one.next != other.next) return one.next < other.next;
    return a > b;
  }

 private:
  static int rank(const Candidate& each) {
    if (each.preference == Preference::kInOrder) return 1;
    return each.preference == Preference::kLast ? 2 : 0;
  }

  const std::vector<Candidate>* idle_;
  const BlockSizes* block_sizes_;
  CoverOrder order_;
};

class Cover {
 public:
  Cover(const BlockSizes& block_sizes, std::span<const Life> lives, std::size_t runs,
        const CoverOptions& options)
      : block_sizes_{block_sizes},
        options_{options},
        idle_{find_candidates(block_sizes, lives, options)},
        taken_(idle_.size()),
        returning_(runs + 1),
        wanted_(runs + 1) {
    for (std::size_t i = 0; i < idle_.size(); ++i) {
      // The last run before its next use: any other may need the room sooner.
      if (idle_[i].preference == Preference::kAlways) wanted_[idle_[i].next - 1].push_back(i);
    }
    for (const Candidate& idle : idle_) {
      const auto blocks = static_cast<std::size_t>(idle.data) + 1;
      if (far_copies_.size() < blocks) far_copies_.resize(blocks);
    }
  }

  // Makes room for run `position`, which needs `demand` when nothing is away. False when that
  // cannot be done.
  bool make_room(Position position, Bytes demand, Bytes pool) {
    away_ -= returning_[position];
    for (const std::size_t i : wanted_[position]) {
      if (taken_[i] < size(i)) take(i, size(i), position);
    }
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
    const Candidate& idle = idle_[i];
    const bool is_whole = options_.whole_blocks || idle.preference == Preference::kFirstWhole ||
                          idle.preference == Preference::kAlways;
    const bool is_wanted = idle.preference == Preference::kAlways;
    Bytes& taken = taken_[i];
    const Bytes left = size(i) - taken;
    const Bytes amount = is_whole ? left : std::min(left, wanted);
    const Bytes end = taken + amount;
    FarCopy& copy = far_copies_[static_cast<std::size_t>(idle.data)];
    if (copy.made_after < idle.written) copy = {.made_after = idle.written, .size = {}};
    while (taken < end) {
      // Cut where the far copy ends: the first part need not be transferred again.
      Bytes part = taken < copy.size ? std::min(end, copy.size) - taken : end - taken;
      if (!options_.whole_blocks) part = std::min(part, options_.chunk);
      far_intervals_.push_back({idle, taken, part, position, is_wanted});
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
  std::vector<Candidate> idle_;
  std::vector<Bytes> taken_;                      // by idle interval: bytes that are far in it
  std::vector<Bytes> returning_;                  // by position: bytes that are away no more
  std::vector<std::vector<std::size_t>> wanted_;  // by position: idle intervals to be far by then
  std::vector<FarCopy> far_copies_;               // by block
  std::vector<FarInterval> far_intervals_;
  Bytes away_;
  std::size_t next_idle_ = 0;
  std::priority_queue<std::size_t, std::vector<std::size_t>, LeavesLater> open_{
      LeavesLater{idle_, block_sizes_, options_.order}};
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
