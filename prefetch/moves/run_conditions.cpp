#include "prefetch/moves/run_conditions.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "prefetch/liveness.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Returns for every k the bytes of the first k moves, plus `before`.
std::vector<Bytes> running_total(const std::vector<Move>& moves, Bytes before) {
  std::vector<Bytes> total{before};
  total.reserve(moves.size() + 1);
  for (const Move& move : moves) total.push_back(total.back() + move.size);
  return total;
}

// Finds values above a limit in ranges (a segment tree of maxima).
class LatestAbove {
 public:
  explicit LatestAbove(const std::vector<std::int64_t>& values)
      : leaves_{std::bit_ceil(std::max<std::size_t>(1, values.size()))},
        max_(2 * leaves_, std::numeric_limits<std::int64_t>::min()) {
    std::ranges::copy(values, max_.begin() + static_cast<std::ptrdiff_t>(leaves_));
    for (std::size_t i = leaves_ - 1; i > 0; --i) max_[i] = std::max(max_[2 * i], max_[2 * i + 1]);
  }

  // Returns the last index in [begin, end) with a value above `limit`; `end` if there is none.
  // Complexity: O(log values).
  [[nodiscard]] std::size_t find(std::size_t begin, std::size_t end, std::int64_t limit) const {
    if (begin >= end) return end;
    std::size_t node = leaves_ + end - 1;  // of a range that ends where the searched one does
    std::size_t size = 1;
    while (max_[node] <= limit) {  // to the preceding range, as large as possible
      while (node % 2 == 0 && node > 1) {
        node /= 2;
        size *= 2;
      }
      if (node == 1 || node * size - leaves_ <= begin) return end;
      --node;
    }
    while (node < leaves_) node = 2 * node + (max_[2 * node + 1] > limit ? 1 : 0);
    const std::size_t found = node - leaves_;
    return found < begin ? end : found;
  }

 private:
  std::size_t leaves_;
  std::vector<std::int64_t> max_;  // a binary heap: the children of node i are 2 i and 2 i + 1
};

// Finds the conditions of each run, in order.
class RunConditions {
 public:
  RunConditions(Plan& plan, std::span<const Bytes> demand, Bytes pool, Bytes far)
      : plan_{plan},
        demand_{demand},
        pool_{pool},
        offloaded_{running_total(plan.offloads, far)},
        prefetched_{running_total(plan.prefetches, {})},
        offloads_before_{offloads_before(plan.prefetches)},
        taken_{taken()} {}

  void add(std::span<const std::uint32_t> landed) {
    Progress sure;
    for (Position p = 0; p < plan_.runs.size(); ++p) {
      sure.runs = p;
      sure.prefetches = std::max(sure.prefetches, landed[p]);
      sure.offloads = std::max(sure.offloads, offloads_before_[sure.prefetches]);
      sure.offloads = std::max(sure.offloads, offloads_for(p, sure));
      plan_.runs[p].after = sure;
    }
  }

 private:
  // Returns by k the number of offloads that have ended when the first k prefetches have started.
  static std::vector<std::uint32_t> offloads_before(const std::vector<Move>& prefetches) {
    std::vector<std::uint32_t> before{0};
    before.reserve(prefetches.size() + 1);
    for (const Move& move : prefetches) {
      before.push_back(std::max(before.back(), move.after.offloads));
    }
    return before;
  }

  // Returns by k the bytes that the first k prefetches have taken beyond the room made before them.
  [[nodiscard]] std::vector<std::int64_t> taken() const {
    std::vector<std::int64_t> result(prefetched_.size());
    for (std::size_t k = 0; k < result.size(); ++k) {
      result[k] = signed_bytes(prefetched_[k]) - signed_bytes(offloaded_[offloads_before_[k]]);
    }
    return result;
  }
  static std::int64_t signed_bytes(Bytes size) { return static_cast<std::int64_t>(size.count()); }

  // Returns the offloads that run p must wait for, however many optional prefetches have started.
  // The last number of prefetches with too few offloads before it requires the most.
  [[nodiscard]] std::uint32_t offloads_for(Position p, const Progress& sure) {
    for (; may_start_ < plan_.prefetches.size(); ++may_start_) {
      if (plan_.prefetches[may_start_].after.runs > p) break;
    }
    const std::size_t end = std::max<std::size_t>(may_start_, sure.prefetches) + 1;
    const auto begin = static_cast<std::size_t>(
        std::upper_bound(offloads_before_.begin() + sure.prefetches,
                         offloads_before_.begin() + static_cast<std::ptrdiff_t>(end),
                         sure.offloads) -
        offloads_before_.begin());
    std::size_t worst = taken_.find(begin, end, signed_bytes(pool_) - signed_bytes(demand_[p]));
    if (worst == end) worst = begin - 1;  // among those with no more room than is guaranteed
    const auto away = std::ranges::lower_bound(
        offloaded_, um::saturating_difference(demand_[p] + prefetched_[worst], pool_));
    um::expects(away != offloaded_.end(), "an execution keeps within its pool");
    return static_cast<std::uint32_t>(away - offloaded_.begin());
  }

  Plan& plan_;
  std::span<const Bytes> demand_;
  Bytes pool_;
  std::vector<Bytes> offloaded_;
  std::vector<Bytes> prefetched_;
  std::vector<std::uint32_t> offloads_before_;
  LatestAbove taken_;
  std::size_t may_start_ = 0;  // prefetches that may have started before the current run
};

}  // namespace

void add_run_conditions(std::span<const Bytes> demand, Bytes pool, Bytes far,
                        std::span<const std::uint32_t> landed, Plan& plan) {
  RunConditions{plan, demand, pool, far}.add(landed);
}

}  // namespace spillway::prefetch
