#include "prefetch/moves/home_search.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Returns the interval up to the first use of state.
IdleInterval at_start(const Life& life) {
  return {.data = life.data,
          .next = life.accesses.front().position,
          .is_written = false,
          .from_start = true};
}

constexpr int kShares = 256;
constexpr int kMostFree = 40;  // 64ths of the pool

Bytes part_of(Bytes all, int share, int of) {
  const auto parts = static_cast<std::uint64_t>(of);
  return Bytes{all.count() / parts * static_cast<std::uint64_t>(share) +
               all.count() % parts * static_cast<std::uint64_t>(share) / parts};
}

}  // namespace

std::vector<DataId> by_idle_time(const BlockSizes& block_sizes, std::span<const Life> lives) {
  std::vector<std::pair<Position, DataId>> idle;
  for (const Life& life : lives) {
    if (!life.outlives_step() || !block_sizes.is_movable(life.data)) continue;
    const Position first = life.accesses.front().position;
    const Position last = life.accesses.back().position;
    idle.emplace_back(first + (life.whole_step - 1 - last), life.data);
  }
  std::ranges::stable_sort(idle, std::ranges::greater{},
                           [](const auto& each) { return each.first; });
  std::vector<DataId> result;
  result.reserve(idle.size());
  for (const auto& [runs, data] : idle) result.push_back(data);
  return result;
}

std::vector<HomeBytes> homes_for_far_updates(const TaskGraph& graph,
                                             const BlockSizes& block_sizes) {
  std::vector<HomeBytes> homes(graph.data.size());
  for (const FarUpdate& update : graph.far_updates) {
    for (const DataId id : {update.gradient, update.parameters}) {
      homes[static_cast<std::size_t>(id)].far = block_sizes.size(id);
    }
  }
  return homes;
}

std::vector<FarInterval> far_intervals_from_start(const BlockSizes& block_sizes,
                                                  std::span<const Life> lives,
                                                  const CoverOptions& options) {
  std::vector<FarInterval> far_intervals;
  for (const Life& life : lives) {
    const Bytes size = options.home(life.data).far;
    if (size == Bytes{} || life.is_sent || !block_sizes.is_movable(life.data)) continue;
    const Bytes chunk = options.whole_blocks ? size : options.chunk;
    for (Bytes offset; offset < size; offset += chunk) {
      far_intervals.push_back({.offset = offset, .size = std::min(chunk, size - offset)});
      static_cast<IdleInterval&>(far_intervals.back()) = at_start(life);
      far_intervals.back().starts_far = true;
    }
  }
  return far_intervals;
}

std::vector<FarInterval> copies_from_start(std::span<const Life> lives,
                                           const CoverOptions& options) {
  std::vector<FarInterval> copies;
  for (const Life& life : lives) {
    const auto [far, copied] = options.home(life.data);
    if (copied > Bytes{}) copies.push_back({at_start(life), far, copied});
  }
  return copies;
}

std::vector<Swap> renewals(std::span<const FarInterval> far_intervals, std::span<const Life> lives,
                           std::span<const double> before, double out,
                           const CoverOptions& options) {
  std::vector<Bytes> end(options.homes.size());  // by block: end of the bytes that leave uncopied
  for (const FarInterval& each : far_intervals) {
    if (each.is_written || each.starts_far || options.home(each.data).copied == Bytes{}) continue;
    Bytes& max = end[static_cast<std::size_t>(each.data)];
    max = std::max(max, each.offset + each.size);
  }
  std::vector<Swap> result;
  for (const Life& life : lives) {
    const HomeBytes home = options.home(life.data);
    if (home.copied == Bytes{}) continue;
    const Bytes stop = std::min(end[static_cast<std::size_t>(life.data)], home.with_far_copy());
    IdleInterval idle = idle_interval_at(life, life.whole_step);
    if (!idle.is_written || stop <= home.far) continue;
    idle.next = life.whole_step;
    const double size = static_cast<double>((stop - home.far).count());
    const auto back =
        std::ranges::lower_bound(before, before[idle.last + 1] + 2 * size / out) - before.begin();
    Swap swap{{idle, home.far, stop - home.far},
              std::min(static_cast<Position>(back), life.whole_step)};
    swap.needed = swap.back;
    swap.is_renewal = true;
    result.push_back(swap);
  }
  return result;
}

HomeSearch::HomeSearch(const BlockSizes& block_sizes, std::span<const Life> lives, Bytes pool,
                       const CoverOptions& start)
    : block_sizes_{block_sizes},
      pool_{pool},
      start_{start},
      order_{by_idle_time(block_sizes, lives)} {
  std::erase_if(order_, [&](DataId data) { return start.home(data).far > Bytes{}; });
  for (const DataId data : order_) state_ += block_sizes.size(data);
}

OffloadOptions HomeSearch::options_of(const Shares& shares) const {
  const auto of_pool = [&](int share) {
    constexpr int kParts = 64;
    return um::round_down(part_of(pool_, share, kParts), block_sizes_.page());
  };
  OffloadOptions result{.cover = start_, .kept_free = of_pool(shares.kept_free)};
  result.cover.kept_free = of_pool(shares.kept_free_if_free);
  result.cover.free_first = shares.free_first;
  const Bytes far_end = end_of(shares.far);
  const Bytes copied_end = end_of(shares.far + shares.copied);
  const Bytes end = end_of(shares.far + shares.copied + shares.far_again);
  Bytes begin;
  for (const DataId data : order_) {
    const Bytes size = block_sizes_.size(data);
    HomeBytes& home = result.cover.homes[static_cast<std::size_t>(data)];
    home.far = within(begin, size, {}, far_end) + within(begin, size, copied_end, end);
    home.copied = within(begin, size, far_end, copied_end);
    begin += size;
  }
  return result;
}

// Returns the end of the parts that sum to `shares` of kShares.
Bytes HomeSearch::end_of(int shares) const {
  return um::round_up(part_of(state_, shares, kShares), block_sizes_.page());
}

// Returns how many bytes of a block at `begin` lie in [from, to). An uncuttable block lies where it
// begins.
Bytes HomeSearch::within(Bytes begin, Bytes size, Bytes from, Bytes to) const {
  if (start_.whole_blocks) return from <= begin && begin < to ? size : Bytes{};
  const Bytes first = std::max(begin, from);
  return um::saturating_difference(std::min(begin + size, to), first);
}

// Returns the extremes first, then ever finer points: only some may be evaluated.
std::vector<HomeSearch::Shares> HomeSearch::grid() {
  constexpr std::array<int, 9> kEighths{0, 8, 4, 2, 6, 1, 3, 5, 7};
  std::vector<Shares> shares;
  for (const int eighths : kEighths) {
    const int far = kShares / 8 * eighths;
    shares.push_back({.far = far});
    shares.push_back({.far = far, .copied = kShares - far, .kept_free = 1, .free_first = true});
  }
  return shares;
}

std::vector<HomeSearch::Shares> HomeSearch::neighbours(const Shares& shares, int step) {
  std::vector<Shares> result;
  const auto add = [&](int far, int copied, int far_again, int kept_free, int kept_free_if_free) {
    Shares other = shares;
    other.far += far;
    other.copied += copied;
    other.far_again += far_again;
    other.kept_free += kept_free;
    other.kept_free_if_free += kept_free_if_free;
    if (std::min({other.far, other.copied, other.far_again}) < 0) return;
    if (other.far + other.copied + other.far_again > kShares) return;
    if (std::min(other.kept_free, other.kept_free_if_free) < 0) return;
    if (std::max(other.kept_free, other.kept_free_if_free) > kMostFree) return;
    result.push_back(other);
  };
  const int room = std::max(1, step / 4);
  for (const int by : {-1, 1}) {
    add(0, by * step, 0, 0, 0);
    add(-by * step, by * step, 0, 0, 0);
    add(0, by * step, -by * step, 0, 0);
    add(by * step, 0, 0, 0, 0);
    add(0, 0, by * step, 0, 0);
    add(0, 0, 0, by * room, 0);
    add(0, 0, 0, 0, by * room);
  }
  result.push_back(shares);
  result.back().free_first = !shares.free_first;
  return result;
}

bool HomeSearch::improve(const std::vector<Shares>& candidates, Found& best) {
  bool has_helped = false;
  for (const Shares& shares : candidates) {
    if (left_ <= 0 || best.makespan <= good_enough_) break;
    --left_;
    const std::optional<um::Nanoseconds> makespan = (*evaluate_)(options_of(shares));
    if (!makespan || *makespan >= best.makespan) continue;
    best = {.shares = shares, .makespan = *makespan};
    has_helped = true;
  }
  return has_helped;
}

void HomeSearch::descend(Found& best) {
  for (int step = kShares / 8; step > 0; step /= 2) {
    while (improve(neighbours(best.shares, step), best)) {
    }
  }
}

// Changes several numbers at a time, at random, while evaluations are left.
void HomeSearch::wander(Found& best) {
  constexpr int kScales = 4;
  std::mt19937_64 generator{0};
  const auto change = [&](int scale, int max) {
    const std::uint64_t draw = generator();
    const std::uint64_t span = 2 * static_cast<std::uint64_t>(std::min(scale, max)) + 1;
    return draw % 2 == 0 ? 0 : static_cast<int>(draw / 2 % span) - std::min(scale, max);
  };
  for (int i = 0; left_ > 0 && best.makespan > good_enough_; ++i) {
    const int scale = kShares / 16 >> (i % kScales);
    Shares other = best.shares;
    other.far = std::clamp(other.far + change(scale, kShares), 0, kShares);
    other.copied = std::clamp(other.copied + change(scale, kShares), 0, kShares - other.far);
    other.far_again =
        std::clamp(other.far_again + change(scale, kShares), 0, kShares - other.far - other.copied);
    other.kept_free = std::clamp(other.kept_free + change(scale, 2), 0, kMostFree);
    other.kept_free_if_free = std::clamp(other.kept_free_if_free + change(scale, 2), 0, kMostFree);
    improve({other}, best);
  }
}

OffloadOptions HomeSearch::search(const Evaluation& evaluate, int evaluations,
                                  um::Nanoseconds good_enough) {
  evaluate_ = &evaluate;
  left_ = evaluations;
  good_enough_ = good_enough;
  Found best;
  improve(grid(), best);
  // Descends from the grid's best point, and from far copies of all state: two local minima.
  const int quarter = left_ / 4;
  left_ = quarter;
  descend(best);
  left_ += 2 * quarter;
  Found copied;
  improve({{.copied = kShares, .free_first = true}}, copied);
  descend(copied);
  if (copied.makespan < best.makespan) best = copied;
  left_ += quarter;
  wander(best);
  evaluate_ = nullptr;
  return options_of(best.shares);
}

}  // namespace spillway::prefetch
