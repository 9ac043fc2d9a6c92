#include "prefetch/moves/cover.h"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Bytes [taken, end) of a block that may be far in an idle interval.
struct Candidate : IdleInterval {
  Bytes taken;
  Bytes end;
  bool goes_before = false;  // leaves before others, regardless of age
  Position age = 0;          // smaller for a less recent last use (or mirrored, a later next use)
  Preference preference = Preference::kInOrder;
};

// Orders candidates: the ones to leave first come last.
class LeavesLater {
 public:
  LeavesLater(const std::vector<Candidate>& candidates, const BlockSizes& block_sizes,
              CoverOrder order)
      : candidates_{&candidates}, block_sizes_{&block_sizes}, order_{order} {}

  bool operator()(std::size_t a, std::size_t b) const {
    const Candidate& one = (*candidates_)[a];
    const Candidate& other = (*candidates_)[b];
    if (one.preference != other.preference && rank(one) != rank(other)) {
      return rank(one) > rank(other);
    }
    if (one.goes_before != other.goes_before) return other.goes_before;
    if (order_ == CoverOrder::kLargest) {
      const Bytes size = block_sizes_->size(one.data);
      const Bytes size_of_other = block_sizes_->size(other.data);
      if (size != size_of_other) return size < size_of_other;
    }
    if (order_ == CoverOrder::kLatestNext && one.next != other.next) return one.next < other.next;
    if (one.age != other.age) return one.age > other.age;
    if (one.next != other.next) return one.next < other.next;
    return a > b;
  }

 private:
  static int rank(const Candidate& each) {
    if (each.preference == Preference::kInOrder) return 1;
    return each.preference == Preference::kLast ? 2 : 0;
  }

  const std::vector<Candidate>* candidates_;
  const BlockSizes* block_sizes_;
  CoverOrder order_;
};

// Finds the candidates for far intervals, in order of `last`.
class CandidateFinder {
 public:
  CandidateFinder(const BlockSizes& block_sizes, std::size_t runs, const CoverOptions& options)
      : block_sizes_{block_sizes}, runs_{static_cast<Position>(runs)}, options_{options} {}

  std::vector<Candidate> find(std::span<const Life> lives) {
    const std::vector<IdleInterval> between_uses = find_idle_intervals(block_sizes_, lives);
    for (const IdleInterval& idle : between_uses) add_parts(idle, {});
    for (const Life& life : lives) {
      if (life.outlives_step() && block_sizes_.is_movable(life.data)) add_around_turn(life);
    }
    if (!options_.preferences.empty()) prefer(between_uses);
    std::ranges::stable_sort(candidates_, {}, &IdleInterval::last);
    return std::move(candidates_);
  }

 private:
  // Splits the block into the part with a valid far copy and the part without.
  void add_parts(const IdleInterval& idle, Bytes begin) {
    const Bytes size = block_sizes_.size(idle.data);
    const Bytes copied = idle.is_written ? begin : options_.home(idle.data).with_far_copy();
    if (copied > begin) add(idle, begin, copied, true);
    if (size > copied) add(idle, std::max(begin, copied), size, false);
  }

  void add_around_turn(const Life& life) {
    const Bytes far = options_.home(life.data).far;
    IdleInterval idle = idle_interval_at(life, 0);
    idle.from_start = true;
    if (idle.next > 1 && far < block_sizes_.size(life.data)) add_parts(idle, far);
    if (far == Bytes{}) return;
    idle = idle_interval_at(life, life.whole_step);
    idle.next = life.whole_step;
    idle.to_end = true;
    add(idle, {}, far, true);  // leaves in any case
  }

  void add(const IdleInterval& idle, Bytes begin, Bytes end, bool is_free) {
    const bool goes_before = options_.free_first && is_free;
    const bool by_next_use = goes_before || idle.from_start;
    candidates_.push_back({idle, begin, end, goes_before,
                           by_next_use ? runs_ - std::min(runs_, idle.next) : idle.last});
  }

  // Applies preferences to the candidates that are parts of the named idle intervals.
  void prefer(std::vector<IdleInterval> between_uses) {
    std::map<std::pair<DataId, std::uint32_t>, Preference> by_number;
    for (const MovePreference& each : options_.preferences) {
      by_number[{each.data, each.interval}] = each.preference;
    }
    std::ranges::stable_sort(between_uses, {}, &IdleInterval::last);
    std::map<std::pair<DataId, Position>, Preference> by_last_use;
    std::map<DataId, std::uint32_t> passed;  // idle intervals so far
    for (const IdleInterval& idle : between_uses) {
      const auto preferred = by_number.find({idle.data, passed[idle.data]++});
      if (preferred != by_number.end()) by_last_use[{idle.data, idle.last}] = preferred->second;
    }
    for (Candidate& each : candidates_) {
      if (each.from_start || each.to_end) continue;
      const auto preferred = by_last_use.find({each.data, each.last});
      if (preferred != by_last_use.end()) each.preference = preferred->second;
    }
  }

  const BlockSizes& block_sizes_;
  Position runs_;
  const CoverOptions& options_;
  std::vector<Candidate> candidates_;
};

class Cover {
 public:
  Cover(const BlockSizes& block_sizes, std::span<const Life> lives, std::size_t runs,
        const CoverOptions& options)
      : options_{options},
        candidates_{CandidateFinder{block_sizes, runs, options}.find(lives)},
        returning_(runs + 1),
        wanted_(runs + 1),
        open_{LeavesLater{candidates_, block_sizes, options.order}} {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      // The last run before its next use: another choice may take the room too early.
      if (candidate.preference == Preference::kAlways) wanted_[candidate.next - 1].push_back(i);
      const auto blocks = static_cast<std::size_t>(candidate.data) + 1;
      if (far_copies_.size() < blocks) far_copies_.resize(blocks);
      far_copies_[blocks - 1].size = options.home(candidate.data).with_far_copy();
    }
  }

  // Makes room for run `position`, which needs `demand` when nothing is away. Returns false when
  // that is impossible.
  bool make_room(Position position, Bytes demand, Bytes pool) {
    away_ -= returning_[position];
    for (const std::size_t i : wanted_[position]) {
      if (candidates_[i].taken < candidates_[i].end) {
        take(candidates_[i], candidates_[i].end, position);
      }
    }
    while (next_ < candidates_.size() && candidates_[next_].last < position) open_.push(next_++);
    const Bytes kept_free = std::min(pool, options_.kept_free);
    while (demand + kept_free > pool + away_) {
      while (!open_.empty() && is_used_up(open_.top(), position)) open_.pop();
      const bool is_free = !open_.empty() && candidates_[open_.top()].goes_before;
      const Bytes wanted = is_free ? demand + kept_free : demand;
      if (wanted <= pool + away_) break;
      if (open_.empty()) return false;
      take(candidates_[open_.top()], wanted - away_ - pool, position);
    }
    make_spare_room(position, demand, pool);
    return true;
  }

  // Marks state that must be far at the end, even if no run counts on its room.
  void finish(Position runs) {
    for (Candidate& candidate : candidates_) {
      if (candidate.to_end && candidate.taken < candidate.end) take(candidate, candidate.end, runs);
    }
  }

  std::vector<FarInterval> take_result() { return std::move(far_intervals_); }

 private:
  // Makes room for early prefetches while a block is idle between two uses.
  void make_spare_room(Position position, Bytes demand, Bytes pool) {
    while (demand + options_.spare > pool + away_) {
      while (!open_.empty() && is_used_up(open_.top(), position)) open_.pop();
      if (open_.empty()) return;
      Candidate& idle = candidates_[open_.top()];
      if (idle.from_start || idle.to_end) return;
      take(idle, demand + options_.spare - away_ - pool, position, true);
    }
  }

  [[nodiscard]] bool is_used_up(std::size_t i, Position position) const {
    return candidates_[i].next <= position || candidates_[i].taken == candidates_[i].end;
  }

  void take(Candidate& idle, Bytes wanted, Position position, bool is_spare = false) {
    Bytes& taken = idle.taken;
    const Bytes left = idle.end - taken;
    const bool leaves_always = idle.preference == Preference::kAlways;
    const bool is_whole =
        options_.whole_blocks || leaves_always || idle.preference == Preference::kFirstWhole;
    const Bytes amount = is_whole ? left : std::min(left, wanted);
    const Bytes end = taken + amount;
    FarCopy& copy = far_copies_[static_cast<std::size_t>(idle.data)];
    if (copy.made_after < idle.written) copy = {.made_after = idle.written, .size = {}};
    while (taken < end) {
      // Cut at the end of the far copy: the first part need not be transferred again.
      Bytes part = taken < copy.size ? std::min(end, copy.size) - taken : end - taken;
      if (!options_.whole_blocks) part = std::min(part, options_.chunk);
      far_intervals_.push_back({idle, taken, part, position, leaves_always || is_spare});
      taken += part;
      copy.size = std::max(copy.size, taken);
    }
    away_ += amount;
    returning_[idle.next] += amount;
  }

  // The leading bytes of a block that were offloaded after its last write.
  struct FarCopy {
    Position made_after;
    Bytes size;
  };

  const CoverOptions& options_;
  std::vector<Candidate> candidates_;
  std::vector<Bytes> returning_;                  // by position: bytes that return
  std::vector<std::vector<std::size_t>> wanted_;  // by position: must be far by then
  std::vector<FarCopy> far_copies_;               // by block
  std::vector<FarInterval> far_intervals_;
  Bytes away_;
  std::size_t next_ = 0;  // the next candidate to open
  std::priority_queue<std::size_t, std::vector<std::size_t>, LeavesLater> open_;
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
