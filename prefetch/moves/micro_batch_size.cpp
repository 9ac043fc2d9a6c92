#include "prefetch/moves/micro_batch_size.h"

#include <algorithm>
#include <map>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/plan.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

Bytes largest(const std::vector<Bytes>& sizes) {
  return sizes.empty() ? Bytes{} : *std::ranges::max_element(sizes);
}

// Returns the next size by Eq. 3, at most `batch`.
std::size_t next_size(std::size_t size, std::size_t batch, const MicroBatchNeed& need,
                      Bytes budget) {
  const Bytes room = um::saturating_difference(budget, need.weights);
  if (need.fastest == Bytes{}) return batch;
  const double scale =
      static_cast<double>(room.count()) / static_cast<double>(need.fastest.count());
  const double wanted = static_cast<double>(size) * scale;
  if (wanted >= static_cast<double>(batch)) return batch;
  return std::max<std::size_t>(1, static_cast<std::size_t>(wanted));
}

}  // namespace

BatchCut cut(std::size_t batch, std::size_t size) {
  um::expects(batch > 0 && size > 0, "batches have samples");
  size = std::clamp<std::size_t>(size, 1, batch);
  const std::size_t steps = std::max<std::size_t>(1, (batch + size - 1) / size);
  return {.size = (batch + steps - 1) / steps, .count = steps};
}

MicroBatchNeed micro_batch_need(const TaskGraph& graph, const Profile& profile, Bytes page) {
  const BlockSizes block_sizes{graph, page};
  return {.weights = block_sizes.pinned(),
          .fastest = largest(working_sets(graph, block_sizes, fastest_runs(graph, profile))),
          .min = largest(working_sets(graph, block_sizes, runs_in_order(graph)))};
}

std::optional<BatchCut> converge_micro_batches(std::size_t batch, Bytes budget,
                                               const ProfileMicroBatch& profile) {
  constexpr std::size_t kMaxSizes = 64;
  std::map<std::size_t, bool> fits;  // by size: with its fastest algorithms
  std::size_t size = batch;
  while (!fits.contains(size) && fits.size() < kMaxSizes) {
    const MicroBatchNeed need = profile(size);
    const std::size_t next = next_size(size, batch, need, budget);
    fits.emplace(size, need.weights + need.fastest <= budget);
    if (next == size) break;
    size = next;
  }
  const auto largest_that_fits =
      std::find_if(fits.rbegin(), fits.rend(), [](const auto& entry) { return entry.second; });
  if (largest_that_fits != fits.rend()) return cut(batch, largest_that_fits->first);
  const MicroBatchNeed one = profile(1);
  if (one.weights + one.min > budget) return std::nullopt;
  return BatchCut{.size = 1, .count = batch};
}

std::optional<BatchCut> search_micro_batches(std::size_t batch, const TryMicroBatches& attempt) {
  constexpr int kPatience = 4;
  std::optional<BatchCut> best;
  std::optional<um::Nanoseconds> shortest;
  int in_vain = 0;
  for (std::size_t steps = 1; steps <= batch && in_vain < kPatience; ++steps) {
    const BatchCut candidate = cut(batch, (batch + steps - 1) / steps);
    if (candidate.count != steps) continue;  // same size as with fewer steps
    const MicroBatchTrial trial = attempt(candidate, shortest);
    if (shortest && trial.bound >= *shortest) break;
    if (!trial.total) continue;
    in_vain = shortest && *trial.total >= *shortest ? in_vain + 1 : 0;
    if (in_vain > 0) continue;
    best = candidate;
    shortest = trial.total;
  }
  return best;
}

}  // namespace spillway::prefetch
