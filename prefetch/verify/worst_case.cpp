#include "prefetch/verify/worst_case.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "prefetch/state_home.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;
using Signed = std::int64_t;

Signed signed_count(Bytes size) { return static_cast<Signed>(size.count()); }

// Bytes moved by the first k moves, for every k.
std::vector<Signed> running_total(const std::vector<Move>& moves) {
  std::vector<Signed> total{0};
  for (const Move& move : moves) total.push_back(total.back() + signed_count(move.size));
  return total;
}

// What must hold before the first k prefetches can all have started, for every k.
std::vector<Progress> running_condition(const std::vector<Move>& prefetches) {
  std::vector<Progress> condition{{}};
  for (const Move& move : prefetches) {
    const Progress& before = condition.back();
    condition.push_back({.runs = std::max(before.runs, move.after.runs),
                         .offloads = std::max(before.offloads, move.after.offloads)});
  }
  return condition;
}

class WorstCase {
 public:
  // `far` bytes of state are far when the step begins.
  WorstCase(const Plan& plan, Bytes far)
      : far_{signed_count(far)},
        offloaded_{running_total(plan.offloads)},
        prefetched_{running_total(plan.prefetches)},
        started_{running_condition(plan.prefetches)} {}

  // `live` bytes are live while `runs` runs have ended. Every prefetch that may have started by now
  // is tried.
  void consider(Bytes live, Position runs) {
    for (std::size_t k = sure_.prefetches; k < started_.size() && started_[k].runs <= runs; ++k) {
      const std::uint32_t away = std::max(sure_.offloads, started_[k].offloads);
      peak_ = std::max(peak_, signed_count(live) - far_ - offloaded_[away] + prefetched_[k]);
    }
  }

  // From now on everything in `after` has ended.
  void wait_for(const Progress& after) {
    sure_.prefetches = std::max(sure_.prefetches, after.prefetches);
    sure_.offloads =
        std::max({sure_.offloads, after.offloads, started_[sure_.prefetches].offloads});
  }

  [[nodiscard]] Bytes peak() const { return Bytes{static_cast<std::uint64_t>(peak_)}; }

 private:
  Signed far_;
  std::vector<Signed> offloaded_;
  std::vector<Signed> prefetched_;
  std::vector<Progress> started_;
  Progress sure_;
  Signed peak_ = 0;
};

// Bytes of the blocks that live across the boundary before each run, and after the last.
std::vector<Bytes> live_between(const BlockSizes& block_sizes, std::size_t runs,
                                std::span<const Life> lives) {
  std::vector<Bytes> begins(runs + 1);
  std::vector<Bytes> ends(runs + 1);
  for (const Life& life : lives) {
    begins[life.begins_before_step() ? 0 : life.begin() + 1] += block_sizes.size(life.data);
    if (!life.outlives_step()) ends[life.last() + 1] += block_sizes.size(life.data);
  }
  std::vector<Bytes> result;
  Bytes live;
  for (std::size_t i = 0; i <= runs; ++i) result.push_back(live = live + begins[i] - ends[i]);
  return result;
}

}  // namespace

Bytes worst_case_peak(const TaskGraph& graph, const BlockSizes& block_sizes, const Plan& plan,
                      std::span<const Life> lives) {
  const std::vector<Bytes> during = demand(graph, block_sizes, plan.runs, lives);
  const std::vector<Bytes> before = live_between(block_sizes, plan.runs.size(), lives);
  WorstCase worst{plan, StateHome{graph, block_sizes, plan}.far()};
  for (Position position = 0; position < plan.runs.size(); ++position) {
    worst.consider(before[position], position);
    worst.wait_for(plan.runs[position].after);
    worst.consider(during[position], position);
  }
  worst.consider(before.back(), static_cast<Position>(plan.runs.size()));
  return block_sizes.pinned() + worst.peak();
}

}  // namespace spillway::prefetch
